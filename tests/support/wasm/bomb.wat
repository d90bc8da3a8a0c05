;; Takes memory until there is no more, and writes to all of it. The exit code is 9 when the engine gives no more.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $pages i32)
    (loop $next
      (local.set $pages (memory.grow (i32.const 16)))
      (if (i32.eq (local.get $pages) (i32.const -1)) (then (call $exit (i32.const 9))))
      (memory.fill (i32.shl (local.get $pages) (i32.const 16)) (i32.const 7) (i32.const 1048576))
      (br $next))))

;; Copies the standard input to standard output and to the file that the first argument names.
;; The exit code is the number of WASI's error.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 4)
  (func (export "_start") (local $error i32) (local $path i32)
    (drop (call $args_sizes (i32.const 16) (i32.const 20)))
    (drop (call $args (i32.const 1024) (i32.const 65536)))
    (local.set $path (i32.load (i32.const 1028)))
    ;; The arguments lie behind one another. Create and truncate; the rights are to read, write and seek.
    (local.set $error (call $open (i32.const 3) (i32.const 0) (local.get $path)
      (i32.sub (i32.sub (i32.add (i32.const 65536) (i32.load (i32.const 20))) (local.get $path)) (i32.const 1))
      (i32.const 9) (i64.const 0x46) (i64.const 0) (i32.const 0) (i32.const 12)))
    (if (local.get $error) (then (call $exit (local.get $error))))
    (block $end
      (loop $next
        (i32.store (i32.const 0) (i32.const 131072))
        (i32.store (i32.const 4) (i32.const 65536))
        (local.set $error (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (if (local.get $error) (then (call $exit (local.get $error))))
        (br_if $end (i32.eqz (i32.load (i32.const 8))))
        (i32.store (i32.const 4) (i32.load (i32.const 8)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
        (drop (call $write (i32.load (i32.const 12)) (i32.const 0) (i32.const 1) (i32.const 8)))
        (br $next)))))

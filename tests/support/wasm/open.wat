;; Opens the file that the first argument names, below its folder, and copies the file to standard output.
;; The exit code is the number of WASI's error: 44 is "no such file", 63 "not permitted", 76 "not capable".
;; With a second argument, the module first makes a symbolic link of that name to the first, and opens the link.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_symlink"
    (func $link (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 4)
  (func $length (param $text i32) (result i32) (local $count i32)
    (block $end
      (loop $next
        (br_if $end (i32.eqz (i32.load8_u (i32.add (local.get $text) (local.get $count)))))
        (local.set $count (i32.add (local.get $count) (i32.const 1)))
        (br $next)))
    (local.get $count))
  (func (export "_start") (local $error i32) (local $path i32) (local $name i32)
    (drop (call $args_sizes (i32.const 16) (i32.const 20)))
    (drop (call $args (i32.const 1024) (i32.const 65536)))
    (local.set $path (i32.load (i32.const 1028)))
    (if (i32.gt_u (i32.load (i32.const 16)) (i32.const 2))
      (then
        (local.set $name (i32.load (i32.const 1032)))
        (local.set $error (call $link (local.get $path) (call $length (local.get $path))
          (i32.const 3) (local.get $name) (call $length (local.get $name))))
        (if (local.get $error) (then (call $exit (local.get $error))))
        (local.set $path (local.get $name))))
    ;; Links are followed.
    (local.set $error (call $open (i32.const 3) (i32.const 1) (local.get $path)
      (call $length (local.get $path)) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0)
      (i32.const 12)))
    (if (local.get $error) (then (call $exit (local.get $error))))
    (block $end
      (loop $next
        (i32.store (i32.const 0) (i32.const 131072))
        (i32.store (i32.const 4) (i32.const 65536))
        (local.set $error (call $read (i32.load (i32.const 12)) (i32.const 0) (i32.const 1) (i32.const 8)))
        (if (local.get $error) (then (call $exit (local.get $error))))
        (br_if $end (i32.eqz (i32.load (i32.const 8))))
        (i32.store (i32.const 4) (i32.load (i32.const 8)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
        (br $next)))))

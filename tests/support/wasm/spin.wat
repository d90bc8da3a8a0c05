;; Computes a hash of as many steps as the first argument says, in millions, and writes nothing. The exit code is 0
;; when the hash is not 0. With 0, the loop never ends.
(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 2)
  (func $number (param $text i32) (result i64) (local $value i64) (local $digit i32)
    (block $end
      (loop $next
        (local.set $digit (i32.load8_u (local.get $text)))
        (br_if $end (i32.eqz (local.get $digit)))
        (local.set $value (i64.add (i64.mul (local.get $value) (i64.const 10))
          (i64.extend_i32_u (i32.sub (local.get $digit) (i32.const 48)))))
        (local.set $text (i32.add (local.get $text) (i32.const 1)))
        (br $next)))
    (local.get $value))
  (func $hash (param $steps i64) (result i64) (local $hash i64) (local $step i64)
    (local.set $hash (i64.const 0xcbf29ce484222325))
    (loop $next
      (local.set $hash (i64.mul (i64.xor (local.get $hash) (local.get $step)) (i64.const 0x100000001b3)))
      (local.set $hash (i64.xor (local.get $hash) (i64.shr_u (local.get $hash) (i64.const 29))))
      (local.set $step (i64.add (local.get $step) (i64.const 1)))
      (br_if $next (i64.ne (local.get $step) (local.get $steps))))
    (local.get $hash))
  (func (export "_start")
    (drop (call $args_sizes (i32.const 16) (i32.const 20)))
    (drop (call $args (i32.const 1024) (i32.const 65536)))
    (call $exit (i64.eqz (call $hash
      (i64.mul (call $number (i32.load (i32.const 1028))) (i64.const 1000000)))))))

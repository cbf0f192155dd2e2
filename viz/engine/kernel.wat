;; The one product that a Transformer spends its time in, four numbers at a time (WebAssembly SIMD).
;; kernel.wasm is this file assembled; tests/viz/engine/test_kernel.py says how and holds the two together.
(module
  (import "engine" "memory" (memory 1))

  (func $sum (param $v v128) (result f32)
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $v)) (f32x4.extract_lane 1 (local.get $v)))
      (f32.add (f32x4.extract_lane 2 (local.get $v)) (f32x4.extract_lane 3 (local.get $v)))))

  ;; The dot product of two vectors of $bytes / 4 numbers, whatever their number.
  (func $dot (param $x i32) (param $w i32) (param $bytes i32) (result f32)
    (local $i i32) (local $four i32) (local $acc v128) (local $rest f32)
    (local.set $four (i32.and (local.get $bytes) (i32.const -16)))
    (block $done
      (loop $more
        (br_if $done (i32.ge_u (local.get $i) (local.get $four)))
        (local.set $acc (f32x4.add (local.get $acc) (f32x4.mul
          (v128.load (i32.add (local.get $x) (local.get $i)))
          (v128.load (i32.add (local.get $w) (local.get $i))))))
        (local.set $i (i32.add (local.get $i) (i32.const 16)))
        (br $more)))
    (block $done
      (loop $more
        (br_if $done (i32.ge_u (local.get $i) (local.get $bytes)))
        (local.set $rest (f32.add (local.get $rest) (f32.mul
          (f32.load (i32.add (local.get $x) (local.get $i)))
          (f32.load (i32.add (local.get $w) (local.get $i))))))
        (local.set $i (i32.add (local.get $i) (i32.const 4)))
        (br $more)))
    (f32.add (call $sum (local.get $acc)) (local.get $rest)))

  ;; out[r, o] = x[r, :] . w[o, :] for r < rows, o < outer; all pointers and $inner in bytes, $inner = 4 * inputs.
  ;; Four outputs share every load of x; their weights stay in the cache while all rows pass.
  (func (export "product") (param $x i32) (param $w i32) (param $out i32) (param $rows i32) (param $inner i32) (param $outer i32)
    (local $o i32) (local $r i32) (local $i i32) (local $xr i32) (local $to i32) (local $xv v128)
    (local $w1 i32) (local $w2 i32) (local $w3 i32)
    (local $a0 v128) (local $a1 v128) (local $a2 v128) (local $a3 v128)
    (block $all
      (loop $outputs
        (br_if $all (i32.ge_u (local.get $o) (local.get $outer)))
        (local.set $r (i32.const 0))
        (if (i32.or (i32.and (local.get $inner) (i32.const 15))
                    (i32.gt_u (i32.add (local.get $o) (i32.const 4)) (local.get $outer)))
          (then ;; one output
            (block $done
              (loop $each
                (br_if $done (i32.ge_u (local.get $r) (local.get $rows)))
                (f32.store
                  (i32.add (local.get $out) (i32.shl (i32.add (i32.mul (local.get $r) (local.get $outer)) (local.get $o)) (i32.const 2)))
                  (call $dot (i32.add (local.get $x) (i32.mul (local.get $r) (local.get $inner))) (local.get $w) (local.get $inner)))
                (local.set $r (i32.add (local.get $r) (i32.const 1)))
                (br $each)))
            (local.set $o (i32.add (local.get $o) (i32.const 1)))
            (local.set $w (i32.add (local.get $w) (local.get $inner))))
          (else ;; four outputs
            (local.set $w1 (i32.add (local.get $w) (local.get $inner)))
            (local.set $w2 (i32.add (local.get $w1) (local.get $inner)))
            (local.set $w3 (i32.add (local.get $w2) (local.get $inner)))
            (block $done
              (loop $each
                (br_if $done (i32.ge_u (local.get $r) (local.get $rows)))
                (local.set $xr (i32.add (local.get $x) (i32.mul (local.get $r) (local.get $inner))))
                (local.set $a0 (v128.const f32x4 0 0 0 0))
                (local.set $a1 (v128.const f32x4 0 0 0 0))
                (local.set $a2 (v128.const f32x4 0 0 0 0))
                (local.set $a3 (v128.const f32x4 0 0 0 0))
                (local.set $i (i32.const 0))
                (loop $inputs
                  (local.set $xv (v128.load (i32.add (local.get $xr) (local.get $i))))
                  (local.set $a0 (f32x4.add (local.get $a0) (f32x4.mul (local.get $xv) (v128.load (i32.add (local.get $w) (local.get $i))))))
                  (local.set $a1 (f32x4.add (local.get $a1) (f32x4.mul (local.get $xv) (v128.load (i32.add (local.get $w1) (local.get $i))))))
                  (local.set $a2 (f32x4.add (local.get $a2) (f32x4.mul (local.get $xv) (v128.load (i32.add (local.get $w2) (local.get $i))))))
                  (local.set $a3 (f32x4.add (local.get $a3) (f32x4.mul (local.get $xv) (v128.load (i32.add (local.get $w3) (local.get $i))))))
                  (local.set $i (i32.add (local.get $i) (i32.const 16)))
                  (br_if $inputs (i32.lt_u (local.get $i) (local.get $inner))))
                (local.set $to
                  (i32.add (local.get $out) (i32.shl (i32.add (i32.mul (local.get $r) (local.get $outer)) (local.get $o)) (i32.const 2))))
                (f32.store (local.get $to) (call $sum (local.get $a0)))
                (f32.store offset=4 (local.get $to) (call $sum (local.get $a1)))
                (f32.store offset=8 (local.get $to) (call $sum (local.get $a2)))
                (f32.store offset=12 (local.get $to) (call $sum (local.get $a3)))
                (local.set $r (i32.add (local.get $r) (i32.const 1)))
                (br $each)))
            (local.set $o (i32.add (local.get $o) (i32.const 4)))
            (local.set $w (i32.add (local.get $w3) (local.get $inner)))))
        (br $outputs)))))

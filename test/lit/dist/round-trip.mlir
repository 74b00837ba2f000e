// Printed, parsed and printed again, every op and attribute of dist is the same
// text.
// RUN: monarch-opt %s > %t && monarch-opt %t | diff %t -
// RUN: FileCheck %s < %t

// CHECK: dist.program model "m" plan "p" mesh <data "d" 2, tensor "t" 2> tables [#dist.table<5 in 2 at [0, 2, 5]>]
// CHECK-SAME: optimizer "sgd" rows 8 in units of 4, 1 each
// CHECK-SAME: predicts bytes {all_gather = 96 : i64, send = 64 : i64} collectives {all_gather = 4 : i64, send = 4 : i64} peak 1000 {
dist.program model "m" plan "p" mesh <data "d" 2, tensor "t" 2> tables [#dist.table<5 in 2 at [0, 2, 5]>]
    optimizer "sgd" rows 8 in units of 4, 1 each
    predicts bytes {all_gather = 96, send = 64} collectives {all_gather = 4, send = 4} peak 1000 {
  // CHECK: dist.role @stage0 stage 0
  // CHECK-SAME: shards [#dist.shard<5 by 1 [0]>, #dist.shard<24 = 0 to 12 [3, 4], 12 to 24 [12] by 0 [1, 0], 1 [0, 0]>]
  // CHECK-SAME: schedule [#dist.slot<forward 0>, #dist.slot<step>] {
  dist.role @stage0 stage 0
      shards [#dist.shard<5 by 1 [0]>, #dist.shard<24 = 0 to 12 [3, 4], 12 to 24 [12] by 0 [1, 0], 1 [0, 0]>]
      schedule [#dist.slot<forward 0>, #dist.slot<step>] {
    // CHECK: %[[W:.*]] = dist.parameter <0 persistent "w"> ["w", "tied"] <"data/0", 0, [5, 1]> structure [#dist.dim<3>, #dist.dim<5>] layout <R, S(1:0)> frozen copy : tensor<3x?xf32, #dist.sizes<3, "s0">>
    %w = dist.parameter <0 persistent "w"> ["w", "tied"] <"data/0", 0, [5, 1]>
        structure [#dist.dim<3>, #dist.dim<5>] layout <R, S(1:0)> frozen copy
        : tensor<3x?xf32, #dist.sizes<3, "s0">>
    // CHECK: dist.buffer <1 persistent "b"> ["b"] <"", 0, []> structure [] constant : tensor<f32>
    %b = dist.buffer <1 persistent "b"> ["b"] <"", 0, []> structure [] constant : tensor<f32>
    // CHECK: %[[X:.*]] = dist.input <2 "x"> "x" structure [#dist.dim<4>, #dist.dim<3>] layout <R, R> rows 0 bound 7 : tensor<4x3xf32>
    %x = dist.input <2 "x"> "x" structure [#dist.dim<4>, #dist.dim<3>] layout <R, R> rows 0 bound 7 : tensor<4x3xf32>
    // CHECK: dist.index <3 persistent "index.0"> of <"s0@1:0", "s1"> in <"s1"> : tensor<?xi64, #dist.sizes<"s0@1:0+s1">>
    %i = dist.index <3 persistent "index.0"> of <"s0@1:0", "s1"> in <"s1"> : tensor<?xi64, #dist.sizes<"s0@1:0+s1">>
    // CHECK: %[[SUM:.*]] = dist.state <4 carried "w.grad"> : tensor<3x?xf32, #dist.sizes<3, "s0">>
    %sum = dist.state <4 carried "w.grad"> : tensor<3x?xf32, #dist.sizes<3, "s0">>
    // CHECK: %[[GX:.*]] = dist.leaf 0 : tensor<4x3xf32, #dist.layout<R, R>>
    %gx = dist.leaf 0 : tensor<4x3xf32, #dist.layout<R, R>>
    // CHECK: %[[GW:.*]] = dist.leaf 1 : tensor<3x5xf32, #dist.layout<R, S(1:0)>>
    %gw = dist.leaf 1 : tensor<3x5xf32, #dist.layout<R, S(1:0)>>

    // CHECK: %[[OUT_GLOBAL:.*]], %[[OUT:.*]] = dist.segment "forward" globals tensor<4x5xf32, #dist.layout<R, R>> locals tensor<4x5xf32> {
    %segment:2 = dist.segment "forward" globals tensor<4x5xf32, #dist.layout<R, R>> locals tensor<4x5xf32> {
      // CHECK: %[[Y_GLOBAL:.*]], %[[Y:.*]] = dist.op 7 "aten::mm"(%[[GX]], %[[GW]]) [operand 0, operand 1] : tensor<4x3xf32, #dist.layout<R, R>>, tensor<3x5xf32, #dist.layout<R, S(1:0)>> -> tensor<4x5xf32, #dist.layout<R, S(1:0)>> locals tensor<4x?xf32, #dist.sizes<4, "s0">> {
      %y:2 = dist.op 7 "aten::mm"(%gx, %gw) [operand 0, operand 1]
          : tensor<4x3xf32, #dist.layout<R, R>>, tensor<3x5xf32, #dist.layout<R, S(1:0)>>
          -> tensor<4x5xf32, #dist.layout<R, S(1:0)>> locals tensor<4x?xf32, #dist.sizes<4, "s0">> {
        // CHECK: %{{.*}}:2 = dist.call "aten::mm"(%[[X]], %[[W]]) [operand 0, operand 1, #dist.expr<"2*s0">, #dist.sizes<"s0", 1>] as [#dist.value<5 saved "y">, unit] for 7
        // CHECK-SAME: -> (tensor<4x?xf32, #dist.sizes<4, "s0">>, none)
        %0:2 = dist.call "aten::mm"(%x, %w) [operand 0, operand 1, #dist.expr<"2*s0">, #dist.sizes<"s0", 1>]
            as [#dist.value<5 saved "y">, unit] for 7
            : (tensor<4x3xf32>, tensor<3x?xf32, #dist.sizes<3, "s0">>) -> (tensor<4x?xf32, #dist.sizes<4, "s0">>, none)
        // CHECK: dist.yield locals %{{.*}}#0 : tensor<4x?xf32, #dist.sizes<4, "s0">>
        dist.yield locals %0#0 : tensor<4x?xf32, #dist.sizes<4, "s0">>
      }
      // CHECK: %[[Z_GLOBAL:.*]], %[[Z:.*]] = dist.reshard 2 %[[Y_GLOBAL]] : tensor<4x5xf32, #dist.layout<R, S(1:0)>> -> tensor<4x5xf32, #dist.layout<R, R>> locals tensor<4x5xf32> {
      %z:2 = dist.reshard 2 %y#0 : tensor<4x5xf32, #dist.layout<R, S(1:0)>> -> tensor<4x5xf32, #dist.layout<R, R>> locals tensor<4x5xf32> {
        %0 = dist.call "aten::view"(%y#1) [operand 0, #dist.sizes<"4*s0">] as [#dist.value<6 of 5>]
            : (tensor<4x?xf32, #dist.sizes<4, "s0">>) -> tensor<?xf32, #dist.sizes<"4*s0">>
        // CHECK: dist.all_gather %{{.*}} axes [1] receive <"4*s0@1:0", "4*s0@1:1"> as <7> : tensor<?xf32, #dist.sizes<"4*s0">> -> tensor<20xf32>
        %1 = dist.all_gather %0 axes [1] receive <"4*s0@1:0", "4*s0@1:1"> as <7> : tensor<?xf32, #dist.sizes<"4*s0">> -> tensor<20xf32>
        %2 = dist.call "test::unpack"(%1) [operand 0] as [#dist.value<8>] : (tensor<20xf32>) -> tensor<4x5xf32>
        // CHECK: dist.all_reduce "sum" %{{.*}} axes [0, 1] for 7 : tensor<4x5xf32>
        dist.all_reduce "sum" %2 axes [0, 1] for 7 : tensor<4x5xf32>
        // CHECK: dist.free %{{.*}}, %{{.*}} : tensor<?xf32, #dist.sizes<"4*s0">>, tensor<20xf32>
        dist.free %0, %1 : tensor<?xf32, #dist.sizes<"4*s0">>, tensor<20xf32>
        dist.yield locals %2 : tensor<4x5xf32>
      }
      // CHECK: dist.transfer 2 peer 1 %[[Z_GLOBAL]] : tensor<4x5xf32, #dist.layout<R, R>> {
      dist.transfer 2 peer 1 %z#0 : tensor<4x5xf32, #dist.layout<R, R>> {
        // CHECK: dist.send %[[Z]] peer 1 tag 0 : tensor<4x5xf32>
        dist.send %z#1 peer 1 tag 0 : tensor<4x5xf32>
      }
      // CHECK: dist.yield globals %[[Z_GLOBAL]] : tensor<4x5xf32, #dist.layout<R, R>> locals %[[Z]] : tensor<4x5xf32>
      dist.yield globals %z#0 : tensor<4x5xf32, #dist.layout<R, R>> locals %z#1 : tensor<4x5xf32>
    }
    // CHECK: dist.segment "step" {
    dist.segment "step" {
      // CHECK: dist.finish 2 %[[OUT_GLOBAL]] : tensor<4x5xf32, #dist.layout<R, R>> {
      dist.finish 2 %segment#0 : tensor<4x5xf32, #dist.layout<R, R>> {
        %flat = dist.call "aten::view"(%segment#1) [operand 0, array<i64: 20>] as [#dist.value<9 of 8>] : (tensor<4x5xf32>) -> tensor<20xf32>
        // CHECK: dist.reduce_scatter "sum" %{{.*}} axes [1] send <8, 12> as <10> : tensor<20xf32> -> tensor<?xf32, #dist.sizes<"4*s0">>
        %0 = dist.reduce_scatter "sum" %flat axes [1] send <8, 12> as <10> : tensor<20xf32> -> tensor<?xf32, #dist.sizes<"4*s0">>
        // CHECK: dist.all_to_all %{{.*}} axes [1] send <8, 12> receive <"4*s0", "4*s0"> as <11> : tensor<20xf32> -> tensor<?xf32, #dist.sizes<"8*s0">>
        %1 = dist.all_to_all %flat axes [1] send <8, 12> receive <"4*s0", "4*s0"> as <11> : tensor<20xf32> -> tensor<?xf32, #dist.sizes<"8*s0">>
        // CHECK: dist.zero %{{.*}} axes [1] as <12 of 10> : tensor<?xf32, #dist.sizes<"4*s0">> -> tensor<?xf32, #dist.sizes<"4*s0">>
        %2 = dist.zero %0 axes [1] as <12 of 10> : tensor<?xf32, #dist.sizes<"4*s0">> -> tensor<?xf32, #dist.sizes<"4*s0">>
      }
      // CHECK: dist.finish -1 {
      dist.finish -1 {
        // CHECK: dist.update "sgd" %[[W]] by %[[SUM]] : tensor<3x?xf32, #dist.sizes<3, "s0">>, tensor<3x?xf32, #dist.sizes<3, "s0">>
        dist.update "sgd" %w by %sum : tensor<3x?xf32, #dist.sizes<3, "s0">>, tensor<3x?xf32, #dist.sizes<3, "s0">>
      }
    }
    // CHECK: dist.gradient %[[SUM]] of %[[W]] : tensor<3x?xf32, #dist.sizes<3, "s0">>, tensor<3x?xf32, #dist.sizes<3, "s0">>
    dist.gradient %sum of %w : tensor<3x?xf32, #dist.sizes<3, "s0">>, tensor<3x?xf32, #dist.sizes<3, "s0">>
    // CHECK: %[[NARROW:.*]] = dist.parameter <14 persistent "n">
    %n = dist.parameter <14 persistent "n"> ["n"] <"", 0, [1]> structure [#dist.dim<5>] layout <R, S(0:0)>
        : tensor<?xbf16, #dist.sizes<"s0">>
    // CHECK: %[[MASTER:.*]] = dist.state <15 persistent "n.master">
    %m = dist.state <15 persistent "n.master"> : tensor<?xf32, #dist.sizes<"s0">>
    // CHECK: %[[WIDE:.*]] = dist.state <16 carried "n.grad">
    %ng = dist.state <16 carried "n.grad"> : tensor<?xf32, #dist.sizes<"s0">>
    // CHECK: dist.gradient %[[WIDE]] of %[[NARROW]] master %[[MASTER]] : tensor<?xf32, #dist.sizes<"s0">> : tensor<?xf32, #dist.sizes<"s0">>, tensor<?xbf16, #dist.sizes<"s0">>
    dist.gradient %ng of %n master %m : tensor<?xf32, #dist.sizes<"s0">> : tensor<?xf32, #dist.sizes<"s0">>, tensor<?xbf16, #dist.sizes<"s0">>
    // CHECK: dist.roots zeroed %[[SUM]] : tensor<3x?xf32, #dist.sizes<3, "s0">> loss %{{.*}} : tensor<f32>
    dist.roots zeroed %sum : tensor<3x?xf32, #dist.sizes<3, "s0">> loss %b : tensor<f32>
  }
  // CHECK: dist.role @stage1 stage 1 shards [] schedule [] {
  dist.role @stage1 stage 1 shards [] schedule [] {
    // CHECK: dist.segment "forward"
    %segment:2 = dist.segment "forward" globals tensor<4x5xf32, #dist.layout<R, R>> locals tensor<4x5xf32> {
      // CHECK: dist.transfer 2 peer 0 -> tensor<4x5xf32, #dist.layout<R, R>> locals tensor<4x5xf32> {
      %y:2 = dist.transfer 2 peer 0 -> tensor<4x5xf32, #dist.layout<R, R>> locals tensor<4x5xf32> {
        // CHECK: dist.receive peer 0 tag 0 as <0 saved> : tensor<4x5xf32>
        %0 = dist.receive peer 0 tag 0 as <0 saved> : tensor<4x5xf32>
        dist.yield locals %0 : tensor<4x5xf32>
      }
      dist.yield globals %y#0 : tensor<4x5xf32, #dist.layout<R, R>> locals %y#1 : tensor<4x5xf32>
    }
    dist.roots random %segment#1 : tensor<4x5xf32> squared_norm %segment#1 : tensor<4x5xf32> seed %segment#1 : tensor<4x5xf32>
  }
}

// A stack in another order than the mesh's, a partial sum, a mesh without axes.
// CHECK: dist.program model "" plan "" mesh <> tables []
dist.program model "" plan "" mesh <> tables [] optimizer "adamw" rows 1 in units of 1, 1 each
    predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // CHECK: dist.leaf 0 : tensor<4xf32, #dist.layout<none>>
    %0 = dist.leaf 0 : tensor<4xf32, #dist.layout<none>>
  }
}
// CHECK: dist.program model "" plan "" mesh <tensor "a" 2, tensor "b" 2, tensor "c" 2>
dist.program model "" plan "" mesh <tensor "a" 2, tensor "b" 2, tensor "c" 2> tables [] optimizer "adamw" rows 1 in units of 1, 1 each
    predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // CHECK: dist.leaf 0 : tensor<4xf32, #dist.layout<S(0:0), P, S(0:0) order [2, 0, 1]>>
    %0 = dist.leaf 0 : tensor<4xf32, #dist.layout<S(0:0), P, S(0:0) order [2, 0, 1]>>
  }
}

// Steps go, their instructions stay where they were, in order; global tensors
// and leaves go with the steps.
// RUN: monarch-opt %s --pass-pipeline='builtin.module(dist.program(localize,verify-partitioned))' | FileCheck %s

// CHECK-LABEL: dist.role @stage0
// CHECK-NOT: layout<R
dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 4 in units of 4, 1 each
    predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [#dist.shard<4 by 0 [0]>] schedule [#dist.slot<forward 0>, #dist.slot<backward 0>] {
    // CHECK: %[[X:.*]] = dist.state <0 "x"> : tensor<?xf32, #dist.sizes<"s0">>
    %x = dist.state <0 "x"> : tensor<?xf32, #dist.sizes<"s0">>
    %leaf = dist.leaf 0 : tensor<4xf32, #dist.layout<S(0:0)>>
    // CHECK-NEXT: %[[SAVED:.*]] = dist.segment "forward" locals tensor<4xf32> {
    %saved:2 = dist.segment "forward" globals tensor<4xf32, #dist.layout<R>> locals tensor<4xf32> {
      %y:2 = dist.op 0 "aten::relu"(%leaf) [operand 0]
          : tensor<4xf32, #dist.layout<S(0:0)>> -> tensor<4xf32, #dist.layout<S(0:0)>>
          locals tensor<?xf32, #dist.sizes<"s0">> {
        // CHECK-NEXT: %[[Y:.*]] = dist.call "aten::relu"(%[[X]])
        %0 = dist.call "aten::relu"(%x) [operand 0] as [#dist.value<1>] for 0
            : (tensor<?xf32, #dist.sizes<"s0">>) -> tensor<?xf32, #dist.sizes<"s0">>
        // CHECK-NEXT: dist.free %[[X]]
        dist.free %x : tensor<?xf32, #dist.sizes<"s0">>
        dist.yield locals %0 : tensor<?xf32, #dist.sizes<"s0">>
      }
      %z:2 = dist.reshard 1 %y#0 : tensor<4xf32, #dist.layout<S(0:0)>> -> tensor<4xf32, #dist.layout<R>> locals tensor<4xf32> {
        // CHECK-NEXT: %[[Z:.*]] = dist.all_gather %[[Y]] axes [0]
        %0 = dist.all_gather %y#1 axes [0] receive <2, 2> as <2 saved> : tensor<?xf32, #dist.sizes<"s0">> -> tensor<4xf32>
        dist.yield locals %0 : tensor<4xf32>
      }
      // What belongs to no step stays too.
      // CHECK-NEXT: dist.free %[[Y]]
      dist.free %y#1 : tensor<?xf32, #dist.sizes<"s0">>
      // CHECK-NEXT: dist.yield locals %[[Z]] : tensor<4xf32>
      dist.yield globals %z#0 : tensor<4xf32, #dist.layout<R>> locals %z#1 : tensor<4xf32>
    }
    // CHECK: dist.segment "backward" {
    dist.segment "backward" {
      dist.op 1 "aten::neg"(%saved#0) [operand 0] : tensor<4xf32, #dist.layout<R>> -> tensor<4xf32, #dist.layout<R>> {
        // CHECK-NEXT: dist.free %[[SAVED]]
        dist.free %saved#1 : tensor<4xf32>
      }
    }
    // CHECK: dist.roots
  }
}

// Calls that no root needs go, with the pairs that name them; a live backward
// call keeps its forward call.
// RUN: monarch-opt %s --pass-pipeline='builtin.module(aten.graph(drop-dead-calls))' | FileCheck %s

// CHECK-LABEL: aten.graph rows 1
aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  %w = aten.parameter ["w"] <"", 0, [1]> : tensor<4xf32>
  // CHECK: %[[USED:.*]] = aten.call "test::used"
  %used = aten.call "test::used"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NOT: test::dead
  %dead = aten.call "test::dead"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  %chain = aten.call "test::dead"(%dead) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: aten.call node 3 "test::forward_of_live"
  %forward = aten.call node 3 "test::forward_of_live"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %[[GRADIENT:.*]] = aten.call backward of 3 "test::gradient"
  %gradient = aten.call backward of 3 "test::gradient"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: aten.cotangent %[[GRADIENT]] of %[[USED]] : tensor<4xf32>, tensor<4xf32>
  aten.cotangent %gradient of %used, %dead : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  aten.cotangent %chain of %used : tensor<4xf32>, tensor<4xf32>
  // CHECK-NEXT: aten.gradients
  aten.gradients %w are %gradient : tensor<4xf32>, tensor<4xf32>
  aten.return outputs %used : tensor<4xf32>
}

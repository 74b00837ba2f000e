// Printed, parsed and printed again, every op of aten is the same text.
// RUN: monarch-opt --mlir-print-debuginfo %s > %t && monarch-opt --mlir-print-debuginfo %t | diff %t -
// RUN: FileCheck %s < %t

// CHECK-LABEL: aten.graph rows 4 dynamic inseparable {
aten.graph rows 4 dynamic inseparable {
  // CHECK: %[[X:.*]] = aten.input "x" : tensor<4x8xf32, #aten.batch<[1, 0]>>
  %x = aten.input "x" : tensor<4x8xf32, #aten.batch<[1, 0]>>
  // CHECK: %[[LABELS:.*]] = aten.input "labels" : tensor<4xi64, #aten.batch<[1]>>
  %labels = aten.input "labels" : tensor<4xi64, #aten.batch<[1]>>
  // CHECK: %[[W:.*]] = aten.parameter ["w", "tied.w"] <"data/weights/weight_0", 64, [6, 1]> : tensor<8x6xf32>
  %w = aten.parameter ["w", "tied.w"] <"data/weights/weight_0", 64, [6, 1]> : tensor<8x6xf32>
  // CHECK: aten.parameter ["b"] frozen <"", 0, []> : tensor<bf16>
  %b = aten.parameter ["b"] frozen <"", 0, []> : tensor<bf16>
  // CHECK: %[[MEAN:.*]] = aten.buffer ["mean"] temporary <"", 0, [1]> : tensor<6xf32>
  %mean = aten.buffer ["mean"] temporary <"", 0, [1]> : tensor<6xf32>
  // CHECK: aten.constant "table" <"data/constants/0", 0, [1]> : tensor<5xui8>
  %table = aten.constant "table" <"data/constants/0", 0, [1]> : tensor<5xui8>
  // CHECK: aten.random "random" : tensor<3xi64>
  %random = aten.random "random" : tensor<3xi64>
  // CHECK: %[[COUNT:.*]] = aten.inverse_count "count.0" : tensor<f32>
  %count = aten.inverse_count "count.0" : tensor<f32>
  // CHECK: %[[SEED:.*]] = aten.seed "seed" : tensor<f32>
  %seed = aten.seed "seed" : tensor<f32>

  // CHECK: %[[Y:.*]] = aten.call node 0 "aten::mm"(%[[X]], %[[W]]) [operand 0, operand 1]
  // CHECK-SAME: loc(#[[LOC:.*]])
  %y = aten.call node 0 "aten::mm"(%x, %w) [operand 0, operand 1]
      : (tensor<4x8xf32, #aten.batch<[1, 0]>>, tensor<8x6xf32>) -> tensor<4x6xf32, #aten.batch<[1, 0]>>
      loc(fused["layer", "model.py":12:0])
  // CHECK: %{{.*}}:2 = aten.call "test::all"(%[[Y]]) [none, operands [0, none], true, 1, 1.500000e+00 : f64, "text", array<i64: 1, -2>, array<f64: 5.000000e-01>, array<i1: true, false>, bf16, sizes_of 0, size_of 1:0, sizes_along 0]
  // CHECK-SAME: -> (tensor<3xf32>, tensor<2xf32>)
  %all:2 = aten.call "test::all"(%y) [none, operands [0, none], true, 1, 1.5, "text", array<i64: 1, -2>, array<f64: 0.5>, array<i1: true, false>, bf16, sizes_of 0, size_of 1:0, sizes_along 0]
      : (tensor<4x6xf32, #aten.batch<[1, 0]>>) -> (tensor<3xf32>, tensor<2xf32>)
  %loss = aten.call "aten::sum"(%y) [operand 0, none]
      : (tensor<4x6xf32, #aten.batch<[1, 0]>>) -> tensor<f32>
  // CHECK: %[[GY:.*]] = aten.call backward "aten::expand"(%[[SEED]])
  %gy = aten.call backward "aten::expand"(%seed) [operand 0, sizes_of 0, false]
      : (tensor<f32>) -> tensor<4x6xf32, #aten.batch<[1, 0]>>
  // CHECK: %[[GW:.*]]:2 = aten.call backward of 0 "aten::mm_backward"(%[[GY]])
  // CHECK-SAME: -> (tensor<8x6xf32>, none)
  %gw, %none = aten.call backward of 0 "aten::mm_backward"(%gy) [operand 0]
      : (tensor<4x6xf32, #aten.batch<[1, 0]>>) -> (tensor<8x6xf32>, none)

  // CHECK: aten.cotangent %[[GY]] of %[[Y]] : tensor<4x6xf32, #aten.batch<[1, 0]>>, tensor<4x6xf32, #aten.batch<[1, 0]>>
  aten.cotangent %gy of %y : tensor<4x6xf32, #aten.batch<[1, 0]>>, tensor<4x6xf32, #aten.batch<[1, 0]>>
  // CHECK: aten.gradients %[[W]] are %[[GW]]#0 : tensor<8x6xf32>, tensor<8x6xf32>
  aten.gradients %w are %gw : tensor<8x6xf32>, tensor<8x6xf32>
  // CHECK: aten.update %[[MEAN]] with %[[MEAN]] : tensor<6xf32>, tensor<6xf32>
  aten.update %mean with %mean : tensor<6xf32>, tensor<6xf32>
  // CHECK: aten.count %[[COUNT]] target %[[LABELS]] : tensor<4xi64, #aten.batch<[1]>> ignoring -100 per_unit 0 : tensor<f32>
  aten.count %count target %labels : tensor<4xi64, #aten.batch<[1]>> ignoring -100 per_unit 0 : tensor<f32>
  // CHECK: aten.return loss %{{.*}} : tensor<f32> outputs %[[Y]] : tensor<4x6xf32, #aten.batch<[1, 0]>>
  aten.return loss %loss : tensor<f32> outputs %y : tensor<4x6xf32, #aten.batch<[1, 0]>>
}
// CHECK: #[[MODULE:.*]] = loc("layer")
// CHECK: #[[LINE:.*]] = loc("model.py":12:0)
// CHECK: #[[LOC]] = loc(fused[#[[MODULE]], #[[LINE]]])

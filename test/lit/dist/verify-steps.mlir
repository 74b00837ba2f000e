// RUN: monarch-opt %s --pass-pipeline='builtin.module(dist.program(verify-steps))' --split-input-file --verify-diagnostics

// A step reads its operand's local tensor, one that was passed through, and
// leaves; it frees anything.
dist.program model "" plan "" mesh <> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %w = dist.state <0> : tensor<4xf32>
    %x = dist.leaf 0 : tensor<4xf32, #dist.layout<none>>
    %made:2 = dist.segment "forward" globals tensor<4xf32, #dist.layout<none>> locals tensor<4xf32> {
      %y:2 = dist.op 0 "aten::neg"(%x) [operand 0] : tensor<4xf32, #dist.layout<none>> -> tensor<4xf32, #dist.layout<none>> locals tensor<4xf32> {
        %0 = dist.call "aten::neg"(%w) [operand 0] as [#dist.value<1>] : (tensor<4xf32>) -> tensor<4xf32>
        dist.yield locals %0 : tensor<4xf32>
      }
      %same = dist.op 1 "aten::alias"(%y#0) [operand 0] : tensor<4xf32, #dist.layout<none>> -> tensor<4xf32, #dist.layout<none>> {
      }
      dist.yield globals %same : tensor<4xf32, #dist.layout<none>> locals %y#1 : tensor<4xf32>
    }
    dist.segment "backward" {
      dist.op 2 "aten::neg"(%made#0) [operand 0] : tensor<4xf32, #dist.layout<none>> {
        %0 = dist.call "aten::neg"(%made#1) [operand 0] as [#dist.value<2>] : (tensor<4xf32>) -> tensor<4xf32>
        dist.free %made#1, %0 : tensor<4xf32>, tensor<4xf32>
      }
    }
  }
}

// -----

dist.program model "" plan "" mesh <> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %w = dist.state <0> : tensor<4xf32>
    %x = dist.leaf 0 : tensor<4xf32, #dist.layout<none>>
    dist.segment "forward" {
      %y:2 = dist.op 0 "aten::neg"(%x) [operand 0] : tensor<4xf32, #dist.layout<none>> -> tensor<4xf32, #dist.layout<none>> locals tensor<4xf32> {
        %0 = dist.call "aten::neg"(%w) [operand 0] as [#dist.value<1>] : (tensor<4xf32>) -> tensor<4xf32>
        dist.yield locals %0 : tensor<4xf32>
      }
      dist.op 1 "aten::relu"(%x) [operand 0] : tensor<4xf32, #dist.layout<none>> {
        // expected-error @+1 {{reads a tensor that carries no operand of its step}}
        %0 = dist.call "aten::relu"(%y#1) [operand 0] as [#dist.value<2>] : (tensor<4xf32>) -> tensor<4xf32>
      }
    }
  }
}

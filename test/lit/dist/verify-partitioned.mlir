// RUN: monarch-opt %s --pass-pipeline='builtin.module(dist.program(verify-partitioned))' --split-input-file --verify-diagnostics

dist.program model "" plan "" mesh <> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{is not of the local form}}
    %0 = dist.leaf 0 : tensor<4xf32, #dist.layout<none>>
    dist.segment "forward" {
      // expected-error @+1 {{is not of the local form}}
      dist.finish -1 {
      }
    }
  }
}

// -----

dist.program model "" plan "" mesh <> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %0 = dist.state <0> : tensor<4xf32>
    // expected-error @+1 {{numbers a value 0, which another one is}}
    %1 = dist.state <0> : tensor<4xf32>
  }
}

// -----

dist.program model "" plan "" mesh <> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{numbers a value 2, which another one is, or which is not among the 1 of its role}}
    %0 = dist.state <2> : tensor<4xf32>
  }
}

// -----

dist.program model "" plan "" mesh <> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{makes an alias of value 3, which its role does not have}}
    %0 = dist.state <0 of 3> : tensor<4xf32>
  }
}

// -----

dist.program model "" plan "" mesh <> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %0 = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{has no receive in role 1}}
      dist.send %0 peer 1 tag 7 : tensor<4xf32>
    }
  }
  dist.role @stage1 stage 1 shards [] schedule [] {
    dist.segment "forward" {
      // expected-error @+1 {{has no send in role 0}}
      %0 = dist.receive peer 0 tag 8 as <0> : tensor<4xf32>
      // expected-error @+1 {{has the tag of another receive, 8}}
      %1 = dist.receive peer 0 tag 8 as <1> : tensor<4xf32>
    }
  }
}

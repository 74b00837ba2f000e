// Each diagnostic of dist's verifiers, by the smallest module that earns it.
// RUN: monarch-opt %s --split-input-file --verify-diagnostics

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{layout splits dim 1 of a tensor of rank 1}}
    %0 = dist.leaf 0 : tensor<4xf32, #dist.layout<S(1:0)>>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{a global tensor has sizes that do not depend on the rank}}
    %0 = dist.leaf 0 : tensor<?xf32, #dist.layout<R>>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{there are 2 sizes for 1 dims}}
    %0 = dist.state <0> : tensor<?xf32, #dist.sizes<"s0", 2>>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{has a layout over 2 axes on a mesh of 1}}
    %0 = dist.leaf 0 : tensor<4xf32, #dist.layout<R, R>>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{has a layout that does not fit its structure}}
    %0 = dist.parameter <0 persistent "w"> ["w"] <"", 0, [1]> structure [#dist.dim<4>] layout <S(0:1)> : tensor<2xf32>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{has a layout that does not fit its structure}}
    %0 = dist.input <0> "x" structure [#dist.dim<4>] layout <S(0:1)> rows 0 bound 0 : tensor<2xf32>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  // expected-error @+1 {{is of stage 1 but stands as role 0}}
  dist.role @stage1 stage 1 shards [] schedule [] {
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{'sideways' is no kind of segment}}
    dist.segment "sideways" {
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    // expected-error @+1 {{returns other local tensors than its region yields}}
    %0 = dist.segment "forward" locals tensor<5xf32> {
      dist.yield locals %x : tensor<4xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.leaf 0 : tensor<4xf32, #dist.layout<R>>
    // expected-error @+1 {{returns other global tensors than its region yields}}
    dist.segment "forward" {
      dist.yield globals %x : tensor<4xf32, #dist.layout<R>>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    dist.segment "forward" {
      // expected-error @+1 {{returns other local tensors than its region yields}}
      %0 = dist.finish -1 locals tensor<4xf32> {
      }
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    dist.segment "forward" {
      // expected-error @+1 {{returns other local tensors than its region yields}}
      %0 = dist.op 0 "aten::zeros"() [] locals tensor<4xf32> {
      }
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    dist.segment "forward" {
      // expected-error @+1 {{returns other local tensors than its region yields}}
      %0 = dist.transfer 0 peer 1 locals tensor<4xf32> {
      }
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.leaf 0 : tensor<4xf32, #dist.layout<R>>
    dist.segment "forward" {
      // expected-error @+1 {{changes more than the layout}}
      %0 = dist.reshard 0 %x : tensor<4xf32, #dist.layout<R>> -> tensor<5xf32, #dist.layout<P>> {
      }
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{lists something that is no shard}}
    %0 = dist.index <0> of <"2*s0"> in <> : tensor<?xi64, #dist.sizes<"2*s0">>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    // expected-error @+1 {{is of a value that is no parameter}}
    dist.gradient %x of %x : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    %w = dist.parameter <1 persistent "w"> ["w"] <"", 0, [1]> structure [#dist.dim<5>] layout <R> : tensor<5xf32>
    // expected-error @+1 {{does not have the type of what it updates}}
    dist.gradient %x of %w : tensor<4xf32>, tensor<5xf32>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %g = dist.state <0> : tensor<4xbf16>
    %m = dist.state <1> : tensor<4xf32>
    %w = dist.parameter <2 persistent "w"> ["w"] <"", 0, [1]> structure [#dist.dim<4>] layout <R> : tensor<4xbf16>
    // expected-error @+1 {{does not have the type of what it updates}}
    dist.gradient %g of %w master %m : tensor<4xf32> : tensor<4xbf16>, tensor<4xbf16>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %g = dist.state <0> : tensor<4xf32>
    %m = dist.state <1> : tensor<5xf32>
    %w = dist.parameter <2 persistent "w"> ["w"] <"", 0, [1]> structure [#dist.dim<4>] layout <R> : tensor<4xbf16>
    // expected-error @+1 {{has a master copy that is no float32 copy}}
    dist.gradient %g of %w master %m : tensor<5xf32> : tensor<4xf32>, tensor<4xbf16>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %g = dist.state <0> : tensor<4xf32>
    %w = dist.parameter <1 persistent "w"> ["w"] <"", 0, [1]> structure [#dist.dim<4>] layout <R> : tensor<4xf32>
    // expected-error @+1 {{has a master copy that is no float32 copy}}
    dist.gradient %g of %w master %g : tensor<4xf32> : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{has 1 results but names 0}}
      %0 = dist.call "aten::neg"(%x) [operand 0] as [] : (tensor<4xf32>) -> tensor<4xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{names a dropped result, or drops a named one}}
      %0 = dist.call "aten::neg"(%x) [operand 0] as [unit] : (tensor<4xf32>) -> tensor<4xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{argument is no literal of a program: #aten.sizes_of<0>}}
      %0 = dist.call "aten::view"(%x) [operand 0, sizes_of 0] as [#dist.value<1>] : (tensor<4xf32>) -> tensor<4xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{argument names operand 1, but there are 1}}
      %0 = dist.call "aten::neg"(%x) [operand 1] as [#dist.value<1>] : (tensor<4xf32>) -> tensor<4xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{argument names operand 2, but there are 1}}
      %0 = dist.call "aten::cat"(%x) [operands [0, 2]] as [#dist.value<1>] : (tensor<4xf32>) -> tensor<4xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{'mean' is no reduction}}
      dist.all_reduce "mean" %x axes [0] : tensor<4xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{runs over axis 1 of a mesh of 1}}
      dist.all_reduce "sum" %x axes [1] : tensor<4xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{'mean' is no reduction}}
      %0 = dist.reduce_scatter "mean" %x axes [0] send <2, 2> as <1> : tensor<4xf32> -> tensor<2xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{changes the element type}}
      %0 = dist.all_gather %x axes [0] receive <4, 4> as <1> : tensor<4xf32> -> tensor<8xf64>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{is not of flat tensors}}
      %0 = dist.all_gather %x axes [0] receive <4, 4> as <1> : tensor<4xf32> -> tensor<2x4xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{has 3 sizes for a group of 2}}
      %0 = dist.all_gather %x axes [0] receive <4, 4, 4> as <1> : tensor<4xf32> -> tensor<12xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{has 1 sizes for a group of 2}}
      %0 = dist.all_to_all %x axes [0] send <2, 2> receive <2> as <1> : tensor<4xf32> -> tensor<2xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    dist.segment "forward" {
      // expected-error @+1 {{changes the type}}
      %0 = dist.zero %x axes [0] as <1 of 0> : tensor<4xf32> -> tensor<5xf32>
    }
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.state <0> : tensor<4xf32>
    %y = dist.state <1> : tensor<5xf32>
    dist.segment "forward" {
      // expected-error @+1 {{has a gradient of another type than the parameter}}
      dist.update "sgd" %x by %y : tensor<4xf32>, tensor<5xf32>
    }
  }
}

// -----

// expected-error @+1 {{unknown word 'pipeline'}}
dist.program model "" plan "" mesh <pipeline "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{'s0**2' is no expression}}
    %0 = dist.state <0> : tensor<?xf32, #dist.sizes<"s0**2">>
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    // expected-error @+1 {{an axis is R, P or S}}
    %0 = dist.leaf 0 : tensor<4xf32, #dist.layout<Q>>
  }
}

// -----

dist.program model "" plan "" mesh <> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  // expected-error @+1 {{stands where roles are}}
  builtin.module {
  }
}

// -----

dist.program model "" plan "" mesh <tensor "t" 2> tables [] optimizer "sgd" rows 1 in units of 1, 1 each predicts bytes {} collectives {} peak 0 {
  dist.role @stage0 stage 0 shards [] schedule [] {
    %x = dist.leaf 0 : tensor<4xf32, #dist.layout<R>>
    dist.segment "forward" {
      // expected-error @+1 {{makes 2 global tensors}}
      %0:2 = dist.reshard 0 %x : tensor<4xf32, #dist.layout<R>> -> tensor<4xf32, #dist.layout<R>>, tensor<4xf32, #dist.layout<R>> {
      }
    }
  }
}

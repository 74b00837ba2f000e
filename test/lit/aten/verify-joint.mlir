// RUN: monarch-opt %s --verify-joint --split-input-file --verify-diagnostics

// A sound graph passes.
aten.graph rows 4 {
  %x = aten.input "x" : tensor<4xf32, #aten.batch<[1]>>
  %y = aten.call "aten::sum"(%x) [operand 0, none] : (tensor<4xf32, #aten.batch<[1]>>) -> tensor<f32>
  aten.return loss %y : tensor<f32>
}

// -----

aten.graph rows 4 {
  %x = aten.input "x" : tensor<4xf32>
  %g = aten.call backward "aten::neg"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{is forward but follows a backward call}}
  %y = aten.call "aten::neg"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  aten.return
}

// -----

// expected-error @+1 {{dim 0 of value 0 is 4, not 1 times the 3 rows of the unit}}
module {
  aten.graph rows 3 {
    %x = aten.input "x" : tensor<4xf32, #aten.batch<[1]>>
    aten.return
  }
}

// -----

// expected-error @+1 {{does not hold exactly one aten.graph}}
module {
}

// -----

// expected-error @+1 {{an element type that PyTorch does not have}}
module {
  aten.graph rows 1 {
    %x = aten.input "x" : tensor<4xi3>
    aten.return
  }
}

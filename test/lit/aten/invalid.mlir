// Each diagnostic of aten's verifiers, by the smallest module that earns it.
// RUN: monarch-opt %s --split-input-file --verify-diagnostics

aten.graph rows 1 {
  // expected-error @+1 {{batch has 1 factors for 2 dims}}
  %x = aten.input "x" : tensor<4x8xf32, #aten.batch<[1]>>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  %y = aten.call node 1 "aten::neg"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{has the number of an earlier node, 1}}
  %z = aten.call node 1 "aten::neg"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{belongs to node 3, which no earlier call is}}
  %y = aten.call backward of 3 "aten::neg"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{is backward and cannot be a node}}
  %y = aten.call node 1 backward "aten::neg"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  %y = aten.call node 1 "aten::neg"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{is forward and cannot belong to a node}}
  %z = aten.call of 1 "aten::neg"(%x) [operand 0] : (tensor<4xf32>) -> tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{argument names operand 1, but there are 1}}
  %y = aten.call "aten::neg"(%x) [operand 1] : (tensor<4xf32>) -> tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{argument names operand 2, but there are 1}}
  %y = aten.call "aten::cat"(%x) [operands [0, none, 2]] : (tensor<4xf32>) -> tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{argument takes sizes of result 0, which is undefined}}
  %y = aten.call "aten::view"(%x) [operand 0, sizes_of 0] : (tensor<4xf32>) -> none
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{argument takes size 1 of result 0, which does not exist}}
  %y = aten.call "aten::view"(%x) [operand 0, size_of 0:1] : (tensor<4xf32>) -> tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{argument takes sizes along dim 1, which result 0 lacks}}
  %y = aten.call "aten::split_with_sizes"(%x) [operand 0, sizes_along 1] : (tensor<4xf32>) -> tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{argument is no literal: 1 : i32}}
  %y = aten.call "aten::neg"(%x) [1 : i32] : (tensor<4xf32>) -> tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  %y = aten.input "y" : tensor<5xf32>
  // expected-error @+1 {{cannot be the cotangent of 'tensor<5xf32>'}}
  aten.cotangent %x of %y : tensor<4xf32>, tensor<5xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{are of a value that is no parameter}}
  aten.gradients %x are %x : tensor<4xf32>, tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf64>
  %w = aten.parameter ["w"] <"", 0, [1]> : tensor<4xf32>
  // expected-error @+1 {{cannot be one of parameter 'tensor<4xf32>'}}
  aten.gradients %w are %x : tensor<4xf32>, tensor<4xf64>
  aten.return
}

// -----

aten.graph rows 1 {
  // expected-error @+1 {{has no name}}
  %w = aten.parameter [] <"", 0, [1]> : tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  // expected-error @+1 {{has no name}}
  %w = aten.buffer [] <"", 0, [1]> : tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{is of a value that is no buffer}}
  aten.update %x with %x : tensor<4xf32>, tensor<4xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<5xf32>
  %b = aten.buffer ["b"] <"", 0, [1]> : tensor<4xf32>
  // expected-error @+1 {{makes a buffer of type 'tensor<4xf32>' one of type 'tensor<5xf32>'}}
  aten.update %b with %x : tensor<4xf32>, tensor<5xf32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<f32>
  // expected-error @+1 {{is of a value that is no inverse count}}
  aten.count %x ignoring -100 per_unit 4 : tensor<f32>
  aten.return
}

// -----

aten.graph rows 1 {
  %x = aten.input "x" : tensor<4xf32>
  // expected-error @+1 {{loss must be a scalar}}
  aten.return loss %x : tensor<4xf32>
}

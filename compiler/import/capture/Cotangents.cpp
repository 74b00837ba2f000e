//===- Cotangents.cpp - observer, hooks and the mirror of the engine ------===//
//
// The engine fits a gradient to its operand's shape and type before the hook
// after a node runs, so those ops lie inside the node. Exceptions in observers
// are warnings only: mistakes are collected in `problem`.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/Cotangents.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace monarch {

namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;
using NodePointer = decltype(Edge::function);
using EdgeKey = std::pair<Node *, uint32_t>;

EdgeKey keyOf(const Edge &edge) { return {edge.function.get(), edge.input_nr}; }

template <typename Visit>
void eachTensor(const c10::IValue &value, Visit visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue &element : value.toListRef())
      if (element.isTensor())
        visit(element.toTensor());
  }
}

void addOnce(std::vector<ValueId> &list, ValueId id) {
  if (std::find(list.begin(), list.end(), id) == list.end())
    list.push_back(id);
}

} // namespace

struct Cotangents::State {
  explicit State(Recorder &recorder) : recorder(recorder) {}

  Recorder &recorder;
  std::string problem;
  /// Nodes stay alive: their addresses are keys.
  std::vector<NodePointer> kept;
  std::map<EdgeKey, std::vector<ValueId>> values;
  std::vector<EdgeKey> leaves;
  /// The forward op of each node.
  std::map<Node *, OpId> forwardOps;
  std::set<OpId> owned;
  std::optional<at::CallbackHandle> observer;

  // Backward.
  Node *running = nullptr;
  std::map<EdgeKey, ValueId> mirror;
  std::deque<std::pair<EdgeKey, ValueId>> awaited;
  std::map<EdgeKey, std::vector<ValueId>> gradients;
  std::map<OpId, Node *> owners;

  bool isLeaf(const EdgeKey &key) const {
    return std::find(leaves.begin(), leaves.end(), key) != leaves.end();
  }
  void fail(std::string text) {
    if (problem.empty())
      problem = std::move(text);
  }
  void addValue(const EdgeKey &key, ValueId id) {
    if (id != None)
      addOnce(values[key], id);
  }
  void pair(ValueId gradient, const EdgeKey &key) {
    auto found = values.find(key);
    if (found == values.end())
      return fail(
          fmt::format("a gradient of {} has no value", key.first->name()));
    Value &value = recorder.graph.values[gradient];
    for (ValueId forward : found->second) {
      const Value &of = recorder.graph.value(forward);
      if (of.shape == value.shape && of.type == value.type)
        addOnce(value.cotangentOf, forward);
      else
        fail(fmt::format("a gradient of {} has another shape than its value",
                         key.first->name()));
    }
  }

  void onCallStart(const at::RecordFunction &call);
  void onCallEnd(const at::RecordFunction &call, OpId firstOp);
  void own(const NodePointer &node, OpId firstOp);
  void beforeNode(Node *node, const variable_list &gradOutputs);
  void afterNode(Node *node, const variable_list &gradInputs);
  void onOp(OpId id);
};

namespace {

// RecordFunction takes plain functions: the state that they belong to.
thread_local Cotangents *observed = nullptr;

struct CallContext : at::ObserverContext {
  OpId firstOp = None;
};

template <typename State> struct BeforeNode : torch::autograd::FunctionPreHook {
  BeforeNode(State &state, Node *node) : state(state), node(node) {}
  variable_list operator()(const variable_list &gradients) override {
    state.beforeNode(node, gradients);
    return gradients;
  }
  State &state;
  Node *node;
};

template <typename State> struct AfterNode : torch::autograd::FunctionPostHook {
  AfterNode(State &state, Node *node) : state(state), node(node) {}
  variable_list operator()(const variable_list &gradInputs,
                           const variable_list &) override {
    state.afterNode(node, gradInputs);
    return gradInputs;
  }
  State &state;
  Node *node;
};

} // namespace

void Cotangents::State::onCallStart(const at::RecordFunction &call) {
  at::DisableRecordFunctionGuard unobserved;
  for (const c10::IValue &input : call.inputs())
    eachTensor(input, [&](const at::Tensor &tensor) {
      if (!tensor.defined() || !tensor.requires_grad())
        return;
      Edge edge = torch::autograd::impl::gradient_edge(tensor);
      kept.push_back(edge.function);
      addValue(keyOf(edge), recorder.idOf(tensor));
    });
}

/// A node that is new at the end of a call was made by the innermost call, the
/// one that ends first; the op that call recorded last is its forward op.
void Cotangents::State::own(const NodePointer &node, OpId firstOp) {
  kept.push_back(node);
  auto [place, isNew] = forwardOps.try_emplace(node.get(), None);
  if (!isNew)
    return;
  for (OpId id = firstOp; id < static_cast<OpId>(recorder.graph.ops.size());
       ++id)
    if (owned.insert(id).second)
      place->second = id;
}

void Cotangents::State::onCallEnd(const at::RecordFunction &call,
                                  OpId firstOp) {
  at::DisableRecordFunctionGuard unobserved;
  for (const c10::IValue &output : call.outputs())
    eachTensor(output, [&](const at::Tensor &tensor) {
      if (!tensor.defined() || !tensor.requires_grad() || !tensor.grad_fn())
        return;
      const NodePointer node = tensor.grad_fn();
      addValue({node.get(), tensor.output_nr()}, recorder.idOf(tensor));
      // A write into a view: the base's node did the work, the view's gradient
      // function is made anew.
      if (tensor.is_view()) {
        const at::Tensor base(tensor._base());
        if (base.requires_grad() && base.grad_fn()) {
          addValue({base.grad_fn().get(), base.output_nr()},
                   recorder.idOf(base));
          if (base.grad_fn()->name().find("CopySlices") != std::string::npos)
            own(base.grad_fn(), firstOp);
        }
      }
      own(node, firstOp);
    });
}

void Cotangents::State::beforeNode(Node *node,
                                   const variable_list &gradOutputs) {
  if (!awaited.empty())
    fail("a sum of gradients was expected and not seen");
  running = node;
  for (uint32_t i = 0; i < gradOutputs.size(); ++i) {
    ValueId id = recorder.idOf(gradOutputs[i]);
    if (id == None)
      continue;
    auto summed = mirror.find({node, i});
    if (summed != mirror.end() && summed->second != id)
      fail("gradients were summed in another order than expected");
    pair(id, {node, i});
  }
}

void Cotangents::State::afterNode(Node *node, const variable_list &gradInputs) {
  running = nullptr;
  for (size_t i = 0; i < gradInputs.size(); ++i) {
    ValueId id = recorder.idOf(gradInputs[i]);
    const Edge &edge = node->next_edge(i);
    if (id == None || !edge.is_valid())
      continue;
    EdgeKey key = keyOf(edge);
    pair(id, key);
    if (isLeaf(key))
      gradients[key].push_back(id);
    if (mirror.count(key) != 0)
      awaited.emplace_back(key, id);
    else
      mirror[key] = id;
  }
}

void Cotangents::State::onOp(OpId id) {
  if (running != nullptr) {
    owners[id] = running;
    return;
  }
  const Op &op = recorder.graph.op(id);
  if (awaited.empty())
    return fail(op.name + " ran between nodes and is no sum of gradients");
  auto [key, added] = awaited.front();
  awaited.pop_front();
  if (op.name != "aten::add.Tensor" || op.operands.size() != 2 ||
      op.operands[0] != mirror[key] || op.operands[1] != added)
    return fail(op.name + " is not the sum of gradients that was expected");
  mirror[key] = op.results[0];
  pair(op.results[0], key);
}

Cotangents::Cotangents(Recorder &recorder)
    : state(std::make_unique<State>(recorder)) {}

Cotangents::~Cotangents() {
  if (state->observer)
    at::removeCallback(*state->observer);
  state->recorder.onBackwardOp = nullptr;
}

void Cotangents::addLeaf(const at::Tensor &leaf) {
  Edge edge = torch::autograd::impl::gradient_edge(leaf);
  state->kept.push_back(edge.function);
  state->leaves.push_back(keyOf(edge));
  state->addValue(keyOf(edge), state->recorder.idOf(leaf));
}

void Cotangents::startForward() {
  observed = this;
  auto start = [](const at::RecordFunction &call)
      -> std::unique_ptr<at::ObserverContext> {
    auto context = std::make_unique<CallContext>();
    State &state = *observed->state;
    context->firstOp = static_cast<OpId>(state.recorder.graph.ops.size());
    if (at::GradMode::is_enabled())
      state.onCallStart(call);
    return context;
  };
  auto end = [](const at::RecordFunction &call, at::ObserverContext *context) {
    if (context != nullptr && at::GradMode::is_enabled())
      observed->state->onCallEnd(call,
                                 static_cast<CallContext *>(context)->firstOp);
  };
  state->observer =
      at::addThreadLocalCallback(at::RecordFunctionCallback(+start, +end)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
}

void Cotangents::startBackward(const at::Tensor &loss) {
  at::removeCallback(*state->observer);
  state->observer.reset();
  observed = nullptr;
  std::vector<NodePointer> open = {loss.grad_fn()};
  std::set<Node *> seen;
  while (!open.empty()) {
    NodePointer node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node.get()).second)
      continue;
    state->kept.push_back(node);
    if (!state->isLeaf({node.get(), 0})) {
      node->add_pre_hook(
          std::make_unique<BeforeNode<State>>(*state, node.get()));
      node->add_post_hook(
          std::make_unique<AfterNode<State>>(*state, node.get()));
    }
    for (const Edge &edge : node->next_edges())
      open.push_back(edge.function);
  }
  state->recorder.onBackwardOp = [this](OpId id) { state->onOp(id); };
}

std::optional<Error> Cotangents::finish() {
  Graph &graph = state->recorder.graph;
  for (auto [op, node] : state->owners) {
    OpId forward = None;
    if (auto found = state->forwardOps.find(node);
        found != state->forwardOps.end())
      forward = found->second;
    // A node whose call recorded nothing: the op that made its value.
    if (forward == None)
      if (auto found = state->values.find({node, 0});
          found != state->values.end())
        forward = graph.value(found->second.front()).producer;
    if (forward == None)
      state->fail(fmt::format("{} has no forward op: {}", graph.op(op).name,
                              node->name()));
    graph.ops[op].forward = forward;
  }
  if (state->problem.empty())
    return std::nullopt;
  return Error{"MP1011", ExitCode::Internal,
               "the backward cannot be matched with the forward: " +
                   state->problem,
               "", "report this model"};
}

std::vector<ValueId> Cotangents::uses(size_t leaf) const {
  auto found = state->gradients.find(state->leaves[leaf]);
  return found == state->gradients.end() ? std::vector<ValueId>()
                                         : found->second;
}

} // namespace monarch

"""Exports a Hugging Face model to the .pt2 file that monarch-plan reads.

    python -m monarch_plan.export Qwen/Qwen3-0.6B -o qwen3.pt2 --sequence 1024 --dynamic-batch
    python -m monarch_plan.export path/to/config.json -o model.pt2
    python -m monarch_plan.export --config llama --set num_hidden_layers=4 -o llama.pt2

MODEL is a model of the hub, or a folder; without weights in it, or with
--config and the name of an architecture, the weights are random and no network
is asked. With --fake-weights there are none, so that a model of any size can be
planned. The program is the training step's forward with the loss inside, as
the model's own code computes it: nothing is rewritten.
"""

import argparse
import contextlib
import inspect
import json
import pathlib
import sys
import warnings

import torch

# Of several heads that a model type may have, the first that it has.
TASKS = {
    "seq2seq-lm": "AutoModelForSeq2SeqLM",
    "speech-seq2seq": "AutoModelForSpeechSeq2Seq",
    "masked-lm": "AutoModelForMaskedLM",
    "causal-lm": "AutoModelForCausalLM",
    "image-classification": "AutoModelForImageClassification",
    "sequence-classification": "AutoModelForSequenceClassification",
    "zero-shot-image-classification": "AutoModelForZeroShotImageClassification",
}
DTYPES = ("float32", "bfloat16", "float16", "float64")


class ExportError(Exception):
    """What is wrong, and what to do about it."""


def import_transformers():
    try:
        import transformers
    except ImportError as error:
        raise ExportError("Hugging Face transformers is not installed: pip install transformers"
                          ) from error
    transformers.logging.set_verbosity_error()
    return transformers


#===- The model ----------------------------------------------------------===#

def read_config(model=None, architecture=None, overrides=None):
    """The configuration of a hub model, a folder, a config.json, or of an
    architecture by name, with some of its fields replaced."""
    transformers = import_transformers()
    overrides = overrides or {}
    if architecture:
        try:
            config = transformers.AutoConfig.for_model(architecture, **overrides)
        except ValueError as error:
            raise ExportError(f"'{architecture}' with these fields is no configuration: {error}"
                              ) from error
    else:
        try:
            config = transformers.AutoConfig.from_pretrained(model, **overrides)
        except (OSError, ValueError) as error:
            raise ExportError(f"'{model}' is no model that can be read: {error}") from error
    # transformers keeps fields that it does not know. Models also read some of
    # those of generation.
    known = set(type(config)().to_dict()) | set(type(config).attribute_map) | set(
        transformers.GenerationConfig().to_dict())
    unknown = sorted(set(overrides) - known)
    if unknown:
        raise ExportError(f"a configuration of '{config.model_type}' has no field "
                          + ", ".join(unknown))
    # A cache is for generation; its tensors would be outputs of the program.
    for part in (config, config.get_text_config()):
        if hasattr(part, "use_cache"):
            part.use_cache = False
    return config


def has_weights(model):
    folder = pathlib.Path(model)
    if folder.is_file():
        return False
    if not folder.is_dir():
        return True  # of the hub
    return any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin"))


def model_class(config, task=None):
    """The class that the configuration names, or the first task's that has one."""
    transformers = import_transformers()
    for name in [] if task else config.architectures or []:
        named = getattr(transformers, name, None)
        if named and takes_labels(named):
            return named
    for name in [task] if task else TASKS:
        mapping = getattr(transformers, TASKS[name])._model_mapping
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, (list, tuple)) else found
    raise ExportError(f"transformers has no model of type '{config.model_type}' for "
                      + (f"the task {task}" if task else "any of " + ", ".join(TASKS)))


def takes_labels(model):
    return bool({"labels", "return_loss"} & set(inspect.signature(model.forward).parameters))


def load_model(model, config, *, task=None, random_weights=False, seed=0, dtype="float32"):
    """With the weights of the hub or the folder, or with random ones."""
    cls = model_class(config, task)
    if model is not None and not random_weights and has_weights(model):
        return cls.from_pretrained(model, config=config, dtype=getattr(torch, dtype))
    torch.manual_seed(seed)
    # Not `.to`: buffers that the model keeps in float32 stay so.
    previous = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        return cls(config)
    finally:
        torch.set_default_dtype(previous)


def weightless():
    """A context in which tensors have shapes and no bytes."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


#===- Inputs -------------------------------------------------------------===#

def label_shape(model, rows, sequence):
    """Shape and number of classes of the labels."""
    name = type(model).__name__
    if "Classification" in name:
        return (rows,), model.config.num_labels
    return (rows, sequence), model.config.get_text_config().vocab_size


def example_inputs(model, rows, sequence, generator, labels=True):
    """Keyword arguments of one training step, by what the model's forward takes."""
    takes = inspect.signature(model.forward).parameters
    config, text = model.config, model.config.get_text_config()

    def integers(high, *shape):
        return torch.randint(0, high, shape, generator=generator)

    inputs = {}
    if "pixel_values" in takes:
        vision = getattr(config, "vision_config", config)
        size = vision.image_size
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        inputs["pixel_values"] = torch.randn(rows, vision.num_channels, height, width,
                                             generator=generator).to(model.dtype)
    if "input_features" in takes:
        inputs["input_features"] = torch.randn(
            rows, config.num_mel_bins, 2 * config.max_source_positions,
            generator=generator).to(model.dtype)
    if "input_ids" in takes:
        inputs["input_ids"] = integers(text.vocab_size, rows, sequence)
        if "attention_mask" in takes:
            inputs["attention_mask"] = torch.ones(rows, sequence, dtype=torch.int64)
    if not labels and getattr(config, "is_encoder_decoder", False):
        # With labels the model shifts them itself.
        inputs["decoder_input_ids"] = integers(text.vocab_size, rows, sequence)
    if labels and "labels" in takes:
        shape, classes = label_shape(model, rows, sequence)
        inputs["labels"] = integers(classes, *shape)
    elif labels and "return_loss" in takes:
        inputs["return_loss"] = True
    if not any(isinstance(value, torch.Tensor) for value in inputs.values()):
        raise ExportError(f"what {type(model).__name__} takes as input is not known: "
                          + ", ".join(takes))
    return inputs


#===- The program --------------------------------------------------------===#

def export_program(model, inputs, dynamic_batch=False):
    """torch.export of the model's forward; its own error where it cannot."""
    shapes = None
    if dynamic_batch:
        shapes = {name: {0: torch.export.Dim.DYNAMIC} if isinstance(value, torch.Tensor) else None
                  for name, value in inputs.items()}
    try:
        return torch.export.export(model, (), inputs, strict=False, dynamic_shapes=shapes)
    except Exception as error:  # PyTorch raises many kinds
        raise ExportError(f"torch.export cannot export {type(model).__name__}: "
                          f"{type(error).__name__}: {error}") from error


def trace_program(model, inputs):
    """torch.jit.trace of the model's forward; its own error where it cannot."""
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    if len(tensors) < len(inputs):
        raise ExportError(f"{type(model).__name__} takes inputs that are no tensors, which a "
                          "trace has not: " + ", ".join(set(inputs) - set(tensors)))
    try:
        return torch.jit.trace(model, example_kwarg_inputs=tensors, check_trace=False,
                               strict=False)
    except Exception as error:  # PyTorch raises many kinds
        raise ExportError(f"torch.jit.trace cannot trace {type(model).__name__}: "
                          f"{type(error).__name__}: {error}") from error


def save(program, output):
    pathlib.Path(output).parent.mkdir(parents=True, exist_ok=True)
    if isinstance(program, torch.jit.ScriptModule):
        try:
            program.save(str(output))
        except RuntimeError as error:  # a call of Python, as an autograd function
            pathlib.Path(output).unlink(missing_ok=True)
            raise ExportError(f"torch.jit cannot save this trace: {error}") from error
    else:
        torch.export.save(program, output)


def describe(model, inputs, output):
    unique = {id(parameter): parameter.numel() for parameter in model.parameters()}
    shapes = ", ".join(f"{name} {'x'.join(map(str, value.shape))}"
                       for name, value in inputs.items() if isinstance(value, torch.Tensor))
    return f"{output}: {type(model).__name__}, {sum(unique.values())} parameters, inputs {shapes}"


def assignment(text):
    """KEY=VALUE; the value is JSON, or a string as it stands."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m monarch_plan.export",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", metavar="MODEL",
                        help="a model of the hub, a folder, or a config.json")
    parser.add_argument("--config", metavar="ARCHITECTURE",
                        help="instead of MODEL: a model type of transformers, as 'llama'")
    parser.add_argument("-o", "--output", required=True, help="the .pt2 file, or .pt")
    parser.add_argument("--format", choices=("pt2", "torchscript"), default="pt2",
                        help="torchscript: a trace, whose batch is open where it can be")
    parser.add_argument("--set", type=assignment, action="append", default=[],
                        metavar="KEY=VALUE", help="a field of the configuration")
    parser.add_argument("--task", choices=list(TASKS), help="which head, where several exist")
    parser.add_argument("--batch", type=positive, default=2, help="rows of the example (2)")
    parser.add_argument("--sequence", type=positive, default=128, help="tokens of a row (128)")
    parser.add_argument("--dynamic-batch", action="store_true",
                        help="leave the number of rows open")
    parser.add_argument("--no-labels", action="store_true",
                        help="outputs without a loss: name one with monarch-plan --loss")
    parser.add_argument("--eval", action="store_true",
                        help="in eval() mode, for inference: no dropout")
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--random-weights", action="store_true",
                        help="do not load the weights of MODEL")
    parser.add_argument("--fake-weights", action="store_true",
                        help="no weights at all: for planning")
    parser.add_argument("--seed", type=int, default=0, help="of random weights and inputs")
    options = parser.parse_args(arguments)
    if options.format == "torchscript" and options.fake_weights:
        parser.error("a trace has weights: leave out --fake-weights")
    if (options.model is None) == (options.config is None):
        parser.error("give MODEL or --config ARCHITECTURE")
    return options


def main(arguments=None):
    options = parse(arguments)
    warnings.filterwarnings("ignore")
    try:
        config = read_config(options.model, options.config, dict(options.set))
        with weightless() if options.fake_weights else contextlib.nullcontext():
            model = load_model(options.model, config, task=options.task, seed=options.seed,
                               random_weights=options.random_weights or options.fake_weights,
                               dtype=options.dtype)
            model.train(not options.eval)
            generator = torch.Generator().manual_seed(options.seed)
            inputs = example_inputs(model, options.batch, options.sequence, generator,
                                    labels=not options.no_labels)
            program = (trace_program(model, inputs) if options.format == "torchscript"
                       else export_program(model, inputs, options.dynamic_batch))
        save(program, options.output)
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(describe(model, inputs, options.output))
    return 0


if __name__ == "__main__":
    sys.exit(main())

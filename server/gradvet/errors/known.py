"""The messages of autograd that people meet, as torch 2.13 words them and as older versions did.

`tests/test_explain_error.py` has torch 2.13 raise them.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WrongFix:
    """A change that is often advised for a message, and why it is none here."""

    change: str
    why: str


@dataclass(frozen=True, slots=True)
class Known:
    """A message: what it means, the rules that tell of its cause, what to look for where they are silent.

    `rules` come with the likeliest first. `look_for` names the kinds of places (`places.py`) that can be
    the cause; `raised_there` says that the line which raised is the fault itself, and not only where
    torch noticed it.
    """

    name: str
    pattern: re.Pattern[str]
    meaning: str
    rules: tuple[str, ...]
    right: str
    wrong: tuple[WrongFix, ...] = ()
    look_for: tuple[str, ...] = ()
    raised_there: bool = False


def _known(
    name: str,
    pattern: str,
    meaning: str,
    rules: str,
    right: str,
    *wrong: tuple[str, str],
    look_for: str = "",
    raised_there: bool = False,
) -> Known:
    return Known(
        name,
        re.compile(pattern),
        meaning,
        tuple(rules.split()),
        right,
        tuple(WrongFix(change, why) for change, why in wrong),
        tuple(look_for.split()),
        raised_there,
    )


_RETAIN = "retain_graph=True"
_FORCE = "loss.requires_grad = True"
_DATA = ".data in place of the tensor"

KNOWN: tuple[Known, ...] = (
    _known(
        "modified-in-place",
        r"one of the variables needed for gradient computation has been modified by an inplace operation"
        r"(?:: \[[^\]]*\[[^\]]*\]\](?:, which is output \d+ of (\w+))?)?",
        "Backward needs a value as it was in the forward, and something has written over it since.",
        "inplace-on-saved step-before-backward detached-alias-edited backward-twice state-carried-over",
        "write out of place (`x = x + y` for `x += y`), or move the write, or the optimizer's step, behind the backward",
        (_RETAIN, "it keeps the graph, but the value in it is overwritten all the same"),
        (
            ".detach() or .data",
            "it silences torch by cutting the gradient, or by hiding the write: the gradient is wrong",
        ),
        (
            "with torch.no_grad() around the write",
            "the write is counted there as well; torch raises as before",
        ),
        look_for="write step",
    ),
    _known(
        "backward-twice",
        r"Trying to backward through the graph a second time"
        r"|[Dd]irectly access saved (?:tensors|variables) after they have already been freed"
        r"|Saved intermediate values of the graph are freed when you call \.backward\(\)",
        "A backward has used and freed this graph already; something that was made before leads into it again.",
        "backward-twice state-carried-over running-average-with-graph graph-retained",
        "compute the shared part anew for each backward, add the losses and call backward once, "
        "or `.detach()` the state that is carried from one iteration to the next",
        (
            _RETAIN,
            "where state is carried over, every earlier iteration is kept and walked again; after a step it still raises",
        ),
        look_for="backward",
    ),
    _known(
        "element-0",
        r"element \d+ of tensors does not require grad and does not have a grad_fn",
        "The tensor on which backward was called leads to nothing that requires grad: the way was cut before.",
        "backward-without-graph requires-grad-forced gradient-cut tensor-rewrapped nondifferentiable-in-loss "
        "scalar-in-loss no-grad-in-forward",
        "take away the cut: keep the loss free of `.detach()`, `.item()`, `argmax`, comparisons and `torch.tensor(...)`, "
        "run the forward with grad mode on, and leave something unfrozen",
        (_FORCE, "backward then runs and no parameter gets a gradient: the model does not learn"),
        (_RETAIN, "there is no graph that could be kept"),
        look_for="cut backward",
    ),
    _known(
        "float-has-no-backward",
        r"'(?:float|int|numpy\.\w+|ndarray)' object has no attribute '(?:backward|detach|requires_grad_?|grad_fn)'",
        "What should be a tensor is a Python number or an array: it has left torch on the way.",
        "backward-without-graph scalar-in-loss",
        "drop the `.item()`, `float()` or `.numpy()` on the way to the loss",
        ("torch.tensor(loss, requires_grad=True)", "a new leaf leads nowhere: no parameter gets a gradient"),
        look_for="cut",
    ),
    _known(
        "non-scalar",
        r"grad can be implicitly created only for (?:real )?scalar outputs"
        r"|Mismatch in shape: grad_output\[\d+\] has a shape of",
        "Backward starts from one number, and this tensor has several.",
        "backward-non-scalar",
        "reduce the loss first: `.mean()`, or `.sum()` where each element counts in full",
        ("loss.backward(torch.ones_like(loss))", "that is the gradient of the sum: it grows with the batch"),
        look_for="backward",
        raised_there=True,
    ),
    _known(
        "numpy-on-grad",
        r"Can't call numpy\(\) on Tensor that requires grad",
        "numpy would not see the graph, so torch refuses to hand the tensor over.",
        "numpy-on-grad",
        "`.detach().cpu().numpy()` for what is looked at; on the way to a loss stay in torch",
        (".data.numpy()", "it hands out the storage: a write to the array then corrupts a gradient unseen"),
        (
            "x.requires_grad = False",
            "torch refuses that on a computed tensor, and on a parameter it stops the training",
        ),
        look_for="exit",
        raised_there=True,
    ),
    _known(
        "leaf-in-place",
        r"a (?:view of a )?leaf Variable that requires grad (?:is being|has been) used in an in-place operation",
        "A leaf's value is where its gradient belongs to: torch does not let grad mode record a write over it.",
        "inplace-on-leaf",
        "`with torch.no_grad():` around a write that only sets the value; out of place where the gradient is to flow",
        (_DATA, "the write goes by unseen, and a gradient that needs the old value is silently wrong"),
        (".clone() first", "the copy is changed and the parameter is not"),
        look_for="write",
        raised_there=True,
    ),
    _known(
        "detached-view",
        r"Can't detach views in-?place",
        "`detach_()` would have to cut the tensor that this one is a view of.",
        "inplace-on-view",
        "`x = x.detach()`",
        ("detach_() on the base", "it cuts every other user of the base as well"),
        look_for="write",
        raised_there=True,
    ),
    _known(
        "view-no-grad",
        r"(?:A view was created|This view was created) in (?:no_grad|inference) mode and is being modified inplace",
        "A view was taken with grad mode off and is written with grad mode on: the write cannot be recorded.",
        "inplace-on-view view-made-under-no-grad",
        "take the view and write to it in the same grad mode",
        (_DATA, "the write goes by unseen, and the gradient does not know of it"),
        look_for="write",
        raised_there=True,
    ),
    _known(
        "view-in-place",
        r"Output \d+ of (\w+) is a view and (?:is being|its base or another view of its base has been) modified in-?place",
        "Several views came out of one op, and torch cannot record a write to one of them.",
        "inplace-on-view",
        "write out of place: `x = x * 2`, and `torch.stack` what belongs together",
        (_DATA, "the write goes by unseen, and the gradient does not know of it"),
        look_for="write",
        raised_there=True,
    ),
    _known(
        "flag-of-nonleaf",
        r"you can only change requires_grad flags of leaf variables",
        "The flag of a computed tensor follows from what it was computed from.",
        "requires-grad-of-nonleaf requires-grad-forced",
        "`x = x.detach()` for a value without its graph; freeze parameters, not results",
        (
            ".detach().requires_grad_()",
            "a new leaf: the gradient ends there and never reaches what is behind",
        ),
        look_for="flag",
        raised_there=True,
    ),
    _known(
        "flag-of-integer",
        r"[Oo]nly Tensors of floating point (?:and complex )?dtype can require gradients",
        "Whole numbers have no gradient.",
        "requires-grad-on-integer",
        "make the tensor with a floating dtype, or do not ask for its gradient",
        look_for="flag",
        raised_there=True,
    ),
    _known(
        "grad-of-constant",
        r"One of the differentiated Tensors does not require grad",
        "`autograd.grad` was asked for the gradient of a tensor that does not require grad.",
        "backward-without-graph",
        "`requires_grad_()` on the input before the forward, not after it",
        ("allow_unused=True", "the result is None: there is no gradient to be had"),
        look_for="backward cut",
    ),
    _known(
        "grad-of-unused",
        r"[Tt]he differentiated Tensors?(?: at index \d+)? appears? to not have been used",
        "The output does not depend on that input, or the way between them was cut or started from a copy.",
        "gradient-cut leaf-rebound",
        "ask for the tensor that the forward really used; a name that was assigned anew is another tensor",
        ("allow_unused=True", "it gives None in silence; right only when the input may truly be unused"),
        look_for="backward cut",
    ),
    _known(
        "inference-saved",
        r"Inference tensors cannot be saved for backward"
        r"|Inplace update to inference tensor outside InferenceMode"
        r"|Setting requires_grad=True on inference tensor outside InferenceMode",
        "The tensor was made under `inference_mode`, and autograd can never take part in what is done with it.",
        "inference-tensor-escape",
        "`torch.no_grad()` in place of `inference_mode()`, or `.clone()` outside of it",
        (".detach()", "it gives another inference tensor"),
        ("torch.enable_grad() inside", "inference mode stays on; results have no graph"),
        look_for="inference",
    ),
    _known(
        "deepcopy-nonleaf",
        r"Only Tensors created explicitly by the user \(graph leaves\) support the deepcopy protocol",
        "Something that is copied holds a computed tensor with its graph.",
        "grad-tensor-serialised graph-retained",
        "store `.detach()`ed values on modules and in what is copied; use parametrizations in place of the old weight_norm",
        ("copy.copy", "both copies then share every tensor"),
        look_for="copy",
        raised_there=True,
    ),
    _known(
        "send-nonleaf",
        r"Cowardly refusing to serialize non-leaf tensor which requires_grad",
        "A graph cannot cross to another process.",
        "grad-tensor-serialised",
        "`.detach()` before the tensor is put on the queue; send gradients, not graphs",
        look_for="copy",
        raised_there=True,
    ),
    _known(
        "out-argument",
        r"functions with out=\.\.\. arguments don't support automatic differentiation",
        "An op that writes into a given tensor cannot be recorded; a DataLoader's workers collate that way.",
        "grad-tensor-serialised",
        "give back `.detach()`ed tensors from the dataset; drop `out=` where a gradient is wanted",
        look_for="exit",
    ),
    _known(
        "optimize-nonleaf",
        r"can't optimize a non-leaf Tensor",
        "The optimizer was given a computed tensor: nothing accumulates a gradient there.",
        "leaf-rebound",
        "make the leaf last: `w = torch.randn(3).to(device).requires_grad_()`",
        (".detach()", "alone it gives the optimizer a tensor that does not require grad: nothing is trained"),
        look_for="optimizer flag",
        raised_there=True,
    ),
    _known(
        "optimize-nothing",
        r"optimizer got an empty parameter list",
        "No parameter was found: modules in a plain list, or a generator that was used up before.",
        "parameter-unregistered optimizer-misses-parameters",
        "`nn.ModuleList`, `nn.ParameterList`; call `model.parameters()` anew for each use",
        look_for="optimizer",
        raised_there=True,
    ),
    _known(
        "grad-is-none",
        r"'NoneType' object has no attribute '(?:zero_|data|norm|clone|detach|add_|mul_|abs|mean|sum|item|clamp_)'",
        "`.grad` is None: no backward has reached this tensor, or the name now means a computed tensor.",
        "leaf-rebound grad-of-nonleaf gradient-cut requires-grad-forced",
        "update a leaf in place under `torch.no_grad()`; find the cut between it and the loss",
        ("if w.grad is not None", "it hides that nothing is trained"),
        look_for="cut",
        raised_there=True,
    ),
    _known(
        "grad-of-nonleaf",
        r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed",
        "Backward stores gradients in leaves only; this tensor was computed.",
        "grad-of-nonleaf leaf-rebound",
        "`x.retain_grad()` before the backward, or ask for the leaf's gradient",
        look_for="grad",
        raised_there=True,
    ),
    _known(
        "retain-grad-of-constant",
        r"can't retain_grad on Tensor that has requires_grad=False"
        r"|cannot register a hook on a tensor that doesn't require gradient",
        "No gradient will ever pass through this tensor.",
        "gradient-cut backward-without-graph",
        "find where the way from the parameters to it is cut, or ask for its gradient with `requires_grad_()`",
        look_for="cut",
        raised_there=True,
    ),
    _known(
        "numpy-dtype",
        r"Got unsupported ScalarType (\w+)",
        "numpy has no such type.",
        "numpy-dtype",
        "`.float()` first: `t.detach().float().cpu().numpy()`",
        look_for="exit",
        raised_there=True,
    ),
    _known(
        "scalar-conversion",
        r"Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior",
        "A number was made of a tensor that carries a graph: the number has none.",
        "scalar-conversion scalar-in-loss tensor-rewrapped",
        "`.item()` for a number to look at; stay in torch on the way to a loss",
        look_for="exit cut",
        raised_there=True,
    ),
    _known(
        "copy-construct",
        r"To copy construct from a tensor, it is recommended to use",
        "`torch.tensor(t)` copies the value and leaves the graph behind.",
        "tensor-rewrapped tensor-copied-by-constructor",
        "`t.detach().clone()` for a copy without graph, `t.clone()` for one with it, `torch.stack` for a list of tensors",
        look_for="cut",
        raised_there=True,
    ),
    _known(
        "gradient-count",
        r"function (\w+) returned an incorrect number of gradients",
        "`backward` of a custom Function gives one gradient for each input of `forward`.",
        "function-gradient-count",
        "return one value an input, `None` for those that need no gradient",
        look_for="function",
    ),
    _known(
        "saves-no-tensor",
        r"save_for_backward can only save variables",
        "`save_for_backward` takes tensors; other things are kept on `ctx`.",
        "function-saves-wrong",
        "`ctx.save_for_backward(x)` for tensors, `ctx.alpha = alpha` for the rest",
        (
            "ctx.x = x for the tensors too",
            "the graph is kept alive, and writes to the tensor are not noticed",
        ),
        look_for="function",
        raised_there=True,
    ),
    _known(
        "invalid-gradient",
        r"[Ff]unction (\w+) returned an invalid gradient at index \d+",
        "The gradient that `backward` gives has another shape, type or device than the input.",
        "function-gradient-count",
        "give a gradient of the input's own shape: sum over what was broadcast",
        look_for="function",
    ),
    _known(
        "legacy-function",
        r"Legacy autograd function with non-static forward method is deprecated"
        r"|should not be instantiated. Methods on autograd functions are all static",
        "A custom Function is a class that is never made an object of.",
        "function-not-applied function-not-static",
        "`@staticmethod` on forward and backward, and `MyFunction.apply(x)`",
        look_for="function",
    ),
    _known(
        "once-differentiable",
        r"trying to differentiate twice a function that was marked with @once_differentiable",
        "A gradient of a gradient goes through a backward that promised to be the last.",
        "function-differentiated-twice",
        "write the backward in differentiable ops and drop `@once_differentiable`",
        look_for="function backward",
    ),
    _known(
        "checkpoint-no-grad",
        r"None of the inputs have requires_grad=True\. Gradients will be None",
        "A reentrant checkpoint records only when an input requires grad; parameters inside do not count.",
        "checkpoint-without-grad",
        "`use_reentrant=False`",
        (
            "x.requires_grad_() on the input",
            "it works, and computes a gradient for the data that nobody reads",
        ),
        look_for="checkpoint",
        raised_there=True,
    ),
    _known(
        "unscaled-twice",
        r"unscale_\(\) (?:has already been called on this optimizer|is being called after step)"
        r"|No inf checks were recorded for this optimizer"
        r"|step\(\) has already been called since the last update",
        "The scaler is asked in another order than scale, backward, unscale_, step, update.",
        "scaler-misused clip-misplaced",
        "once an iteration: `unscale_(optimizer)`, clip, `scaler.step(optimizer)`, `scaler.update()`",
        look_for="step",
        raised_there=True,
    ),
    _known(
        "clip-nothing",
        r"`?parameters`? is an empty generator, no gradient clipping will occur",
        "The generator of parameters was used up before.",
        "clip-misplaced",
        "call `model.parameters()` where it is needed, or keep a list",
        look_for="step",
        raised_there=True,
    ),
    _known(
        "mode-uncalled",
        r"'type' object does not support the (?:asynchronous )?context manager protocol",
        "`with torch.no_grad:` names the class; the block needs an object of it.",
        "grad-mode-no-effect",
        "`with torch.no_grad():`",
        look_for="mode",
        raised_there=True,
    ),
    _known(
        "mode-on-class",
        r"Decorating classes is deprecated and will be disabled in future versions",
        "A grad mode that decorates a class runs only its `__init__` in that mode.",
        "grad-mode-no-effect",
        "decorate the methods",
        look_for="mode",
        raised_there=True,
    ),
    _known(
        "method-uncalled",
        r"unsupported operand type\(s\) for [^:]+: (?:'\w+' and )?'builtin_function_or_method'"
        r"|'(?:builtin_function_or_method|method)' object has no attribute '\w+'"
        r"|'(?:builtin_function_or_method|method)' object is not (?:iterable|subscriptable)",
        "A method was named and not called: its brackets are missing.",
        "call-forgotten",
        "add `()`",
        look_for="uncalled",
        raised_there=True,
    ),
    _known(
        "volatile",
        r"volatile was removed",
        "`volatile` has had no effect since torch 0.4.",
        "legacy-api",
        "`with torch.no_grad():`",
        look_for="mode",
        raised_there=True,
    ),
    _known(
        "not-implemented",
        r"(?:the )?derivative for '?([\w:.]+)'? is not implemented",
        "This op has no derivative; torch finds out only in the backward.",
        "nondifferentiable-in-loss",
        "use an op that has one, or take the value out of the loss with `.detach()` where it is a constant",
        look_for="cut",
    ),
    _known(
        "vmap-data",
        r"vmap: It looks like you're (?:calling \.item\(\) on a Tensor"
        r"|attempting to use a Tensor in some data-dependent control flow)"
        r"|Cannot access data pointer of Tensor that doesn't have storage",
        "Under `vmap` or `torch.func` a tensor stands for many; it cannot become one number or one array.",
        "scalar-in-loss numpy-on-grad",
        "`torch.where` in place of `if`; no `.item()` and no `.numpy()` inside",
        look_for="exit",
        raised_there=True,
    ),
    _known(
        "func-not-a-tensor",
        r"Expected f\(\*args\) to return a [Tt]ensor, got (?:<class ')?(\w+)",
        "The function that is to be differentiated gives no tensor.",
        "scalar-in-loss",
        "return the loss itself, without `.item()` or `float()`",
        look_for="cut exit",
    ),
    _known(
        "ddp-unused",
        r"Expected to have finished reduction in the prior iteration before starting a new one",
        "In the last iteration some parameters got no gradient: a part is unused, detached, or not in the loss.",
        "gradient-cut parameter-unregistered",
        "let every parameter take part in the loss, or freeze those that do not before they are wrapped",
        (
            "find_unused_parameters=True",
            "it walks the graph each iteration and hides that a part is not trained",
        ),
        look_for="cut",
    ),
    _known(
        "create-graph-cycle",
        r"Using backward\(\) with create_graph=True will create a reference cycle",
        "Parameter and gradient hold each other, so neither is freed.",
        "create-graph-kept",
        "`torch.autograd.grad(loss, parameters, create_graph=True)`",
        look_for="backward",
        raised_there=True,
    ),
    _known(
        "numpy-times-tensor",
        r"unsupported operand type\(s\) for [^:]+: 'numpy\.ndarray' and 'Tensor'",
        "numpy tries first, and cannot compute with a tensor.",
        "numpy-on-grad",
        "`torch.from_numpy(array)` first, or the tensor on the left",
        look_for="exit",
        raised_there=True,
    ),
    _known(
        "full-backward-hook",
        r"Full backward hook is firing when gradients are computed with respect to module outputs",
        "No input of the hooked module requires grad, so the hook sees gradients of outputs only.",
        "gradient-cut",
        "hook a later module, or let the input require grad",
        look_for="cut",
    ),
    _known(
        "out-of-memory",
        r"CUDA out of memory|MPS backend out of memory|DefaultCPUAllocator: (?:can't|not enough memory)"
        r"|OutOfMemoryError",
        "Memory that grows from step to step is most often a graph that somebody keeps.",
        "graph-retained running-average-with-graph state-carried-over eval-with-grad frozen-model-with-grad "
        "retain-graph-unneeded create-graph-kept",
        "keep values without their graph: `.detach()`, and evaluate under `torch.no_grad()`",
        ("torch.cuda.empty_cache()", "what is still referenced is not freed by it"),
        look_for="",
    ),
)

"""The study file: every field with its description, unit and example. `config/README.md` is generated from here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from palimpsest.core.errors import SeveralErrors, StudyError
from palimpsest.plan.yaml_file import YamlFile, read_yaml

Name = Annotated[str, StringConstraints(max_length=60, pattern=r"^[a-z][a-z0-9]*([_.+-][a-z0-9]+)*$")]
Mask = Literal["all", "seen", "current"]
Protocol = Literal["class_incremental", "task_incremental", "domain_incremental"]
Alternative = Literal["two-sided", "greater", "less"]
PositiveInt = Annotated[int, Field(ge=1)]
Fraction = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
MAX_FLOAT = 1e30
"""Well inside the range of float32, in which training computes."""
Positive = Annotated[float, Field(gt=0, le=MAX_FLOAT, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=MAX_FLOAT, allow_inf_nan=False)]
Similarity = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A part of the study file: unknown keys and wrong types are errors, values are never coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Benchmark(Section):
    """What is learned: a file in `workflow/palimpsest/benchmarks/`."""

    name: Name = Field(description="Name of the benchmark.", examples=["split"])
    seed: int = Field(
        description="Seed of what belongs to the benchmark and not to a run: which samples are for training, "
        "validation and test, and which class is in which task. All statements are conditional on it.",
        examples=[0],
        ge=0,
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Options that the benchmark's file declares.")


class Model(Section):
    """What learns: a file in `workflow/palimpsest/models/`."""

    name: Name = Field(description="Name of the model.", examples=["mlp"])
    options: dict[str, Any] = Field(default_factory=dict, description="Options that the model's file declares.")
    head: Literal["shared", "expanding", "multi"] = Field(
        "shared",
        description="`shared`: one layer for all outputs; `expanding`: outputs are added as their task comes, so "
        "no mask is `all`; `multi`: a layer for each task, which needs the protocol task_incremental.",
    )
    reset_new_outputs: bool = Field(
        False,
        description="Give the outputs of a new task fresh weights when it comes, in a shared head: what earlier tasks "
        "did to outputs that they never used is undone.",
    )


class EarlyStop(Section):
    """When a stage stops before its last epoch: on validation samples alone, of the tasks that it trains on."""

    on: Literal["loss", "accuracy"] = Field(
        description="Mean −log p of the labels in nats, which is to fall, or accuracy as a fraction, which is to rise; "
        "under the study's own protocol, after each epoch.",
        examples=["loss"],
    )
    patience: PositiveInt = Field(description="Epochs in a row without an improvement, then it stops.", examples=[3])
    min_delta: NotNegative = Field(
        0.0, description="What counts as an improvement: more than so much better than the best so far."
    )


class Training(Section):
    """How every run trains on one task; the same for all methods."""

    optimizer: Literal["sgd", "adam"] = Field(description="Optimizer, as PyTorch defines it.", examples=["sgd"])
    learning_rate: Positive = Field(description="Learning rate at the start of each stage.", examples=[0.05])
    momentum: NotNegative = Field(0.0, description="Momentum of SGD; must be 0 for adam.", examples=[0.9])
    weight_decay: NotNegative = Field(0.0, description="L2 penalty that the optimizer adds to the gradient.")
    schedule: Literal["constant", "cosine"] = Field(
        "constant", description="Learning rate over the steps of one stage: constant, or cosine down to 0."
    )
    reset_optimizer: bool = Field(True, description="Start each stage with a fresh optimizer state.")
    batch_size: PositiveInt = Field(description="New samples per step (the last batch may be smaller).", examples=[10])
    epochs: PositiveInt = Field(description="Passes over each task's training samples, at most.", examples=[3])
    steps: PositiveInt | None = Field(
        None,
        description="Steps of each stage, however many samples its task has; a task that cannot give so many within "
        "`epochs` passes ends the run as `data`. All passes if left out.",
        examples=[1000],
    )
    early_stop: EarlyStop | None = Field(
        None,
        description="Rule by which a stage may stop early. The run goes on with the next task, from the weights of its "
        "last epoch, and counts as complete.",
    )

    @model_validator(mode="after")
    def _early_stop_can_stop(self) -> Training:
        if self.early_stop is not None and self.early_stop.patience >= self.epochs:
            raise ValueError(f"a patience of {self.early_stop.patience} never stops a stage of {self.epochs} epochs")
        return self

    @model_validator(mode="after")
    def _momentum_is_for_sgd(self) -> Training:
        if self.optimizer != "sgd" and self.momentum:
            raise ValueError(f"momentum belongs to sgd; {self.optimizer} has none, so write 0")
        return self


class Numerics(Section):
    """What else decides the bytes of a result."""

    threads: PositiveInt = Field(1, description="Threads of one training job, whatever `snakemake -c` says.")
    other_machines: Literal["refuse", "mark"] = Field(
        "refuse",
        description="What happens where a run would go on from a stage that another kind of machine (processor vendor, "
        "instruction set, torch version) trained, which gives other bits: `refuse`, or go on and `mark` it in records "
        "and report.",
        examples=["refuse"],
    )
    evaluation_batch_size: PositiveInt = Field(500, description="Test samples evaluated at once.", examples=[500])


class Orders(Section):
    """In which orders the tasks come."""

    kind: Literal["canonical", "explicit", "random", "enumerate", "balanced", "temporal", "stratified"] = Field(
        description="`canonical`: the benchmark's own; `explicit`: those listed; `random`: drawn; `enumerate`: all (up "
        "to 7 tasks); `balanced`: rows of a Williams square, every task in every position equally often; `temporal`: "
        "the one in which the benchmark's data came about, where it declares one; `stratified`: drawn so that they "
        "spread from orders whose neighbours are alike to orders whose neighbours differ, by `similarity`.",
        examples=["balanced"],
    )
    count: PositiveInt | None = Field(
        None, description="Number of orders, for `random`, `balanced` and `stratified`.", examples=[5]
    )
    seed: int = Field(0, ge=0, description="Seed of `random` and `stratified` orders.")
    explicit: list[list[str]] | None = Field(
        None, description="The orders of `explicit`, each a permutation of the task ids.", examples=[[["t2", "t1"]]]
    )
    similarity: dict[str, dict[str, Similarity]] | None = Field(
        None,
        description="How alike two tasks are, 0 to 1, for `stratified`: every pair of tasks once, or twice with the "
        "same number.",
        examples=[{"t1": {"t2": 0.9, "t3": 0.1}, "t2": {"t3": 0.4}}],
    )

    @model_validator(mode="after")
    def _only_what_the_kind_uses(self) -> Orders:
        if (self.explicit is None) == (self.kind == "explicit"):
            raise ValueError("`explicit` lists the orders of kind explicit, and of no other kind")
        if (self.count is None) == (self.kind in ("random", "balanced", "stratified")):
            raise ValueError(
                "`count` is the number of orders of the kinds random, balanced and stratified, and of no other kind"
            )
        if (self.similarity is None) == (self.kind == "stratified"):
            raise ValueError("`similarity` is the table of the kind stratified, and of no other kind")
        return self


class Design(Section):
    """The units: pairs of a seed and a task order, shared by all methods."""

    crossing: Literal["paired", "full"] = Field(
        description="`paired`: the first seed with the first order, and so on; `full`: every seed with every order."
    )
    seeds: list[Annotated[int, Field(ge=0)]] = Field(
        min_length=1, description="Seeds of initial weights and mini-batches.", examples=[[0, 1, 2, 3, 4]]
    )
    orders: Orders = Field(description="In which orders the tasks come.")

    @model_validator(mode="after")
    def _no_seed_twice(self) -> Design:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"each seed once, or a run would be counted twice; got {self.seeds}")
        return self


class Budgets(Section):
    """What a run of a method may use at most; one that would use more ends there, as `resource`."""

    steps: PositiveInt | None = Field(None, description="Optimizer steps of a run.", examples=[20000])
    samples: PositiveInt | None = Field(
        None, description="New samples that a run is trained on, each time that it is.", examples=[200000]
    )
    flops: PositiveInt | None = Field(
        None,
        description="FLOPs of training, a method's work between tasks included; not of probes and evaluation.",
        examples=[1000000000000],
    )
    memory_bytes: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description="Bytes of what a method stores of samples: inputs, labels, task ids, logits, gradients, whatever "
        "is no copy of weights. A method that declares to need more is refused when the plan is locked.",
        examples=[157000],
    )
    method_bytes: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Bytes of all that a method keeps beside the network, copies of weights included."
    )


class Method(Section):
    """One method of the comparison: a file in `workflow/palimpsest/methods/`, or several joined by `+`."""

    method: Name | None = Field(
        None, description="Name of the method, where it differs from the key under which it stands.", examples=["ewc"]
    )
    hyperparameters: dict[str, Any] = Field(
        default_factory=dict,
        description="Hyperparameters that the method's file declares; for `a+b` one mapping for each part.",
        examples=[{"strength": 30.0}],
    )
    budgets: Budgets | None = Field(None, description="Budgets of this method, over those of the study.")


class References(Section):
    """Runs that the metrics compare with, under the same protocol and training."""

    random_init: bool = Field(True, description="The untrained model, once per seed.")
    isolated: bool = Field(True, description="Each task alone from fresh weights, once per seed.")
    joint: Literal["final", "per_stage"] | None = Field(
        "final",
        description="All tasks at once: `final`, once per seed; `per_stage`, from scratch on tasks 1 to k for every k, "
        "for each unit (T times the cost; needed for intransigence at every k).",
    )


class Comparison(Section):
    """One paired comparison: metric of `a` minus metric of `b`, over units."""

    name: Name = Field(description="How the report calls it.", examples=["replay-against-finetune"])
    a: Name = Field(description="Key of the one method.", examples=["replay"])
    b: Name = Field(description="Key of the other method.", examples=["finetune"])
    metric: Name = Field(description="Name of the metric.", examples=["average_accuracy"])
    index: int | None = Field(
        None, description="Stage k or number of mini-batches b, for metrics with a value for each."
    )
    protocol: Protocol | None = Field(None, description="Which predictions count; the study's protocol if left out.")
    alternative: Alternative = Field("two-sided", description="What the test looks for in a − b.")


class Gate(Section):
    """One condition that decides; a plain text stands for a hard one."""

    gate: str = Field(
        max_length=200,
        description="`comparison.quantity`, one of >= <= > <, a number. Quantities: the numbers of "
        "`statistics/comparisons.parquet` (`mean`, `ci_low`, `ci_high`, `p`, `p_adjusted`, `orders_agreeing`, "
        "`worst_task_change` …; differences a − b as fractions), `training_flops_ratio` (a / b) and "
        "`method_bytes_difference` (a − b). A quantity that is null does not pass.",
        examples=["replay-against-finetune.ci_low > 0"],
    )
    hard: bool = Field(True, description="Whether the verdict needs it; a soft one is only reported.")


class Claim(Section):
    """One statement that needs more than its comparison."""

    claim: Literal["reduces_forgetting"] = Field(
        description="`reduces_forgetting`: a forgets less than b, at matched plasticity: its accuracy right after "
        "training (learning_accuracy) is not lower.",
        examples=["reduces_forgetting"],
    )
    comparison: Name = Field(
        description="Name of a comparison of forgetting.", examples=["replay-against-finetune-forgetting"]
    )
    margin: Fraction | None = Field(
        None,
        description="How much lower learning accuracy may be, as a fraction: the lower confidence bound of a − b must "
        "not lie below −margin. δ if left out.",
        examples=[0.02],
    )


def _spelled_out(gate: Any) -> Any:
    return {"gate": gate} if isinstance(gate, str) else gate


class Analysis(Section):
    """The comparisons, fixed before the first result exists."""

    primary: Comparison = Field(description="The one comparison that is tested alone at alpha.")
    secondary: list[Comparison] = Field(
        default_factory=list, description="Further comparisons; confirmatory only if the primary one rejects."
    )
    exploratory: list[Comparison] = Field(
        default_factory=list,
        description="Comparisons out of curiosity: listed apart, their p not adjusted, never confirmatory.",
    )
    test: Literal["paired_t"] = Field("paired_t", description="The test that alone gives the verdict.")
    alpha: Annotated[float, Field(gt=0, lt=1)] = Field(0.05, description="Level of the test.", examples=[0.05])
    correction: Literal["holm"] = Field(
        "holm",
        description="Correction over the secondary comparisons: Holm's for p, Bonferroni's for simultaneous intervals.",
    )
    equivalence_margin: Fraction | None = Field(
        None, description="Difference that does not matter (δ), as a fraction.", examples=[0.02]
    )
    failed_runs: Literal["bounds"] = Field(
        "bounds",
        description="Rule for runs that ended early: complete pairs are reported, and a confirmatory verdict must "
        "hold with a failed a at its worst attainable value and a failed b at its best.",
    )
    gates: list[Annotated[Gate, BeforeValidator(_spelled_out, json_schema_input_type=str | Gate)]] = Field(
        default_factory=list, description="Conditions that decide; the verdict is that all hard ones hold."
    )
    claims: list[Claim] = Field(default_factory=list, description="Statements that hold only under further conditions.")
    expected_effect: Fraction | None = Field(
        None, description="Difference that the study should find, as a fraction.", examples=[0.1]
    )
    expected_sd: Fraction | None = Field(
        None, description="Expected SD of the paired differences, as a fraction.", examples=[0.03]
    )
    expected_sd_source: str | None = Field(None, max_length=1000, description="Where that expectation comes from.")

    @property
    def deciding(self) -> list[Comparison]:
        """The comparisons that gates and claims may be about: all but the exploratory ones, the primary one first."""
        return [self.primary, *self.secondary]

    @model_validator(mode="after")
    def _names_are_unique(self) -> Analysis:
        names = [comparison.name for comparison in (*self.deciding, *self.exploratory)]
        if len(set(names)) < len(names):
            raise ValueError(f"each comparison needs a name of its own; got {names}")
        if (self.expected_effect is None) != (self.expected_sd is None):
            raise ValueError("the power needs both, expected_effect and expected_sd, or neither")
        if self.expected_sd is not None and not self.expected_sd_source:
            raise ValueError("expected_sd needs its source in expected_sd_source")
        return self


class Probes(Section):
    """When the accuracy on held-out samples is measured while a method trains. It changes no byte of a run."""

    first_batches: Annotated[int, Field(ge=0)] | None = Field(
        10,
        description="β: before the first update of each task (mini-batch 0) and after each of its first β "
        "mini-batches; null: not.",
        examples=[10],
    )
    log: bool = Field(False, description="Also after 0, 1, 2, 4, 8, … mini-batches of each task.")
    every: PositiveInt | None = Field(
        None, description="Also after 0 and every so many mini-batches of each task.", examples=[50]
    )
    held_out_every: PositiveInt | None = Field(
        None,
        description="Also at the start of the run and whenever so many more samples have been seen, whatever the "
        "task; with `tasks: all` this is the evaluation of a stream at regular intervals.",
        examples=[500],
    )
    tasks: Literal["current", "all"] = Field(
        "current", description="On which tasks: the one that is being learned, or all, those to come included."
    )
    split: Literal["validation", "test"] = Field(
        "test",
        description="On which samples: `test` for what is reported; `validation` for what you will look at to choose "
        "something. No probe feeds back into a run.",
    )
    samples: PositiveInt | None = Field(
        None,
        description="At most so many samples of each task, drawn once for each seed and task, the same for all "
        "methods; all samples if left out. The report states the sampling error.",
        examples=[100],
    )

    @model_validator(mode="after")
    def _some_schedule(self) -> Probes:
        if self.first_batches is None and not (self.log or self.every or self.held_out_every):
            raise ValueError("nothing is probed without one of first_batches, log, every and held_out_every")
        return self


class Execution(Section):
    """How the work is cut into jobs. Outside the lock: it changes no byte of a result."""

    stages_per_job: PositiveInt | Literal["all"] = Field(
        "all",
        description="Stages that one Snakemake job trains: `all` for small models, where starting costs more than "
        "training; 1 for stages that take hours.",
        examples=["all", 1],
    )
    runs_per_job: PositiveInt = Field(
        1,
        description="Runs of one method that one Snakemake job works on, one after the other; in training, "
        "one that is there already is skipped. Several for small models, where starting costs more than training, "
        "and for many runs.",
        examples=[5],
    )
    checkpoint_seconds: NotNegative = Field(
        60.0, description="Least time between two resume files of a stage, in seconds: what a killed job loses at most."
    )
    retries: Annotated[int, Field(ge=0, le=100)] = Field(
        1, description="How often Snakemake starts a failed training job again."
    )


class Study(Section):
    """A preregistered study."""

    study: Name = Field(description="Name of the study; its results lie in results/NAME.", examples=["demo"])
    title: str = Field(max_length=200, description="Title of the report.", examples=["Split MNIST, class-incremental"])
    description: str = Field(
        "", max_length=4000, description="What the study is for; printed at the head of the report."
    )
    demonstration: bool = Field(False, description="Whether the study is no finding; the report says so at its head.")
    benchmark: Benchmark
    protocol: Protocol = Field(
        description="`class_incremental`: each task has outputs of its own, and the task of a test sample is unknown; "
        "`task_incremental`: it is given; `domain_incremental`: the tasks share their outputs, and it is unknown."
    )
    training_mask: Mask = Field(
        description="Outputs that the training loss sees: `all`, those of tasks `seen` so far, or `current`: those of "
        "the sample's own task."
    )
    evaluation_mask: Mask = Field(description="Outputs that a prediction may choose from; the same words.")
    model: Model
    training: Training
    numerics: Numerics = Field(default_factory=Numerics)
    design: Design
    methods: dict[Name, Method] = Field(min_length=1, description="The methods, each under a key of its own.")
    references: References = Field(default_factory=References)
    budgets: Budgets = Field(default_factory=Budgets, description="Of every method's runs; references have none.")
    probes: Probes | None = Field(None, description="Probes of the methods' runs while they train; none if left out.")
    prequential: bool = Field(
        False,
        description="Whether each mini-batch of a method's run is predicted before it is trained on, and counted as "
        "far as its samples come for the first time (test-then-train).",
    )
    boundaries: Literal["told", "hidden"] = Field(
        "told",
        description="`hidden`: a stream read once, in which nothing tells a method when a task ends. It needs "
        "`epochs: 1`, `reset_optimizer: false`, `schedule: constant`, `training_mask: all`, one shared head, and "
        "methods that need no boundaries; metrics that need them are undefined.",
    )
    analysis: Analysis
    execution: Execution = Field(default_factory=Execution)

    @model_validator(mode="after")
    def _masks_fit_the_protocol(self) -> Study:
        if self.protocol == "class_incremental" and self.evaluation_mask == "current":
            raise ValueError("evaluation_mask current tells the task: that is the protocol task_incremental")
        if self.protocol == "task_incremental" and self.evaluation_mask != "current":
            raise ValueError("the protocol task_incremental needs evaluation_mask current")
        if self.protocol == "domain_incremental" and {self.training_mask, self.evaluation_mask} != {"all"}:
            raise ValueError("under domain_incremental the tasks share their outputs: both masks are `all`")
        return self

    @model_validator(mode="after")
    def _head_fits_the_protocol(self) -> Study:
        if self.model.head == "multi" and self.protocol != "task_incremental":
            raise ValueError("a head for each task must be told the task: that is the protocol task_incremental")
        if self.model.head == "expanding" and "all" in (self.training_mask, self.evaluation_mask):
            raise ValueError("an expanding head has no outputs of tasks to come: no mask can be `all`")
        if self.model.reset_new_outputs and self.model.head != "shared":
            raise ValueError("reset_new_outputs is for a shared head; the outputs of other heads are new anyway")
        return self

    @model_validator(mode="after")
    def _hidden_boundaries_stay_hidden(self) -> Study:
        training = self.training
        telling = {
            "training.epochs: 1": training.epochs != 1,
            "training.reset_optimizer: false": training.reset_optimizer,
            "training.schedule: constant": training.schedule != "constant",
            "training_mask: all": self.training_mask != "all",
            "model.head: shared": self.model.head != "shared",
            "model.reset_new_outputs: false": self.model.reset_new_outputs,
        }
        needed = [field for field, tells in telling.items() if tells]
        if self.boundaries == "hidden" and needed:
            raise ValueError(f"a stream whose boundaries are hidden needs {', '.join(needed)}")
        return self


def read_study(path: Path) -> tuple[Study, YamlFile]:
    """Read and validate a study file.

    Raises:
        StudyError, SeveralErrors: each problem with its line in the file.
    """
    file = read_yaml(path)
    try:
        study = Study.model_validate(file.content)
    except ValidationError as error:
        raise SeveralErrors(list(problems(error, file, ()))) from None
    if study.study != path.stem:
        raise StudyError(
            "a study is named as its file",
            where=file.where(("study",)),
            expected=repr(path.stem),
            got=repr(study.study),
            next="rename the file or the study",
        )
    return study, file


def problems(error: ValidationError, file: YamlFile, prefix: tuple[str | int, ...]) -> Iterable[StudyError]:
    """Our errors for pydantic's, with the place in the file."""
    for problem in error.errors(include_url=False):
        place = (*prefix, *(part for part in problem["loc"] if not _is_union_branch(part)))
        unknown = problem["type"] == "extra_forbidden"
        missing = problem["type"] == "missing"
        message = problem["msg"].removeprefix("Value error, ")
        yield StudyError(
            f"unknown key {place[-1]!r}" if unknown else "a key is missing" if missing else "a value does not fit",
            where=file.where(place),
            expected="a key that config/README.md lists here" if unknown else message[0].lower() + message[1:],
            got="nothing" if missing else _short(problem["input"]),
            next="remove it, or correct its spelling" if unknown else "correct the study file; config/README.md helps",
        )


def _is_union_branch(part: str | int) -> bool:
    return isinstance(part, str) and ("[" in part or part == "[key]" or part == "constrained-int")


def _short(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '…'}"

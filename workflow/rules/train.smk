# One rule for each block of stages that one job trains. A single rule that depended on itself by a wildcard could
# train earlier stages again when code changes during a run.

for block, methods in grid.blocks(study.execution.stages_per_job).items():

    rule:
        name:
            f"train_{block.name}"
        input:
            code=f"{STUDY}/plan/code/{{method}}.json",
            samples=f"{STUDY}/data/samples.parquet",
            inputs=f"{STUDY}/data/inputs.npy",
            parents=lambda wildcards, block=block: [
                f"{STUDY}/runs/{wildcards.method}/{wildcards.unit}/stage-{stage}.json"
                for stage in grid.parents(wildcards, block)
            ],
        output:
            [f"{STUDY}/runs/{{method}}/{{unit}}/stage-{stage}.json" for stage in block.stages],
        log:
            f"{STUDY}/telemetry/logs/train/{{method}}/{{unit}}/{block.name}.log",
        wildcard_constraints:
            method="|".join(re.escape(method) for method in methods),
        retries: study.execution.retries
        threads: study.numerics.threads
        params:
            study=STUDY,
            spec=grid.spec,
            stages=",".join(map(str, block.stages)),
        shell:
            "palimpsest stage train --study {params.study} --code plan/code/{wildcards.method}.json"
            " --run {wildcards.method}/{wildcards.unit} --spec {params.spec:q} --stages {params.stages} > {log} 2>&1"


rule collect:
    input:
        code=f"{STUDY}/plan/code/rules/collect.json",
        stages=lambda wildcards: [
            f"{STUDY}/runs/{wildcards.method}/{wildcards.unit}/stage-{stage}.json"
            for stage in grid.run(wildcards).stage_numbers
        ],
    output:
        f"{STUDY}/runs/{{method}}/{{unit}}/steps.parquet",
        f"{STUDY}/runs/{{method}}/{{unit}}/outcome.parquet",
        f"{STUDY}/telemetry/{{method}}/{{unit}}.parquet",
    log:
        f"{STUDY}/telemetry/logs/collect/{{method}}/{{unit}}.log",
    params:
        study=STUDY,
        stages=lambda wildcards: ",".join(map(str, grid.run(wildcards).stage_numbers)),
    shell:
        "palimpsest stage collect --study {params.study} --code plan/code/rules/collect.json"
        " --run {wildcards.method}/{wildcards.unit} --stages {params.stages} > {log} 2>&1"

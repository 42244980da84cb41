# One rule for each block of stages and each batch of runs. A single rule that depended on itself by a wildcard could
# train earlier stages again when code changes during a run. `shell` is bound late: what varies travels through params.
# Texts of a study go through functions: Snakemake would take `{word}` in a plain one for a wildcard.

for batch in BATCHES:
    for block in batch.blocks(study.execution.stages_per_job):

        rule:
            name:
                f"train_{block.name}_{batch.name}"
            input:
                code=f"{STUDY}/plan/code/{batch.method}.json",
                samples=f"{STUDY}/data/samples.parquet",
                inputs=f"{STUDY}/data/inputs.npy",
                moves=f"{STUDY}/data/moves.parquet",
                parents=batch.paths(f"{STUDY}/runs/{{run}}/stage-{{stage}}.json", block.parents),
            output:
                batch.paths(f"{STUDY}/runs/{{run}}/stage-{{stage}}.json", block.stages),
            log:
                f"{STUDY}/telemetry/logs/train/{batch.name}/{block.name}.log",
            retries: study.execution.retries
            threads: study.numerics.threads
            resources:
                # Not a parameter: another pace changes no result and reruns nothing.
                checkpoint_seconds=str(study.execution.checkpoint_seconds),
            params:
                study=study.study,
                method=batch.method,
                shared=lambda wildcards, batch=batch: grid.shared(batch.method),
                units=lambda wildcards, batch=batch: batch.units,
                stages=",".join(map(str, block.stages)),
                recording=lambda wildcards, batch=batch: json.dumps(grid.recording(batch.method)),
            shell:
                "palimpsest stage train --study results/{params.study} --code plan/code/{params.method}.json"
                " --method {params.method} --shared {params.shared:q} --units {params.units:q}"
                " --stages {params.stages} --recording {params.recording:q} --checkpoint-seconds {resources.checkpoint_seconds} > {log} 2>&1"

    rule:
        name:
            f"collect_{batch.name}"
        input:
            code=f"{STUDY}/plan/code/rules/collect.json",
            stages=batch.paths(f"{STUDY}/runs/{{run}}/stage-{{stage}}.json", batch.stage_numbers),
        output:
            batch.paths(f"{STUDY}/runs/{{run}}/steps.parquet"),
            batch.paths(f"{STUDY}/runs/{{run}}/outcome.parquet"),
            batch.paths(f"{STUDY}/telemetry/{{run}}.parquet"),
            [batch.paths(f"{STUDY}/{path}") for path in grid.recorded_tables(batch.method)],
        log:
            f"{STUDY}/telemetry/logs/collect/{batch.name}.log",
        params:
            study=study.study,
            method=batch.method,
            shared=lambda wildcards, batch=batch: grid.shared(batch.method),
            units=lambda wildcards, batch=batch: batch.units,
            recording=lambda wildcards, batch=batch: json.dumps(grid.recording(batch.method)),
        shell:
            "palimpsest stage collect --study results/{params.study} --code plan/code/rules/collect.json"
            " --method {params.method} --shared {params.shared:q} --units {params.units:q}"
            " --recording {params.recording:q} > {log} 2>&1"

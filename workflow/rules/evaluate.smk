for batch in BATCHES:

    rule:
        name:
            f"evaluate_{batch.name}"
        input:
            code=f"{STUDY}/plan/code/evaluate/{batch.method}.json",
            samples=f"{STUDY}/data/samples.parquet",
            inputs=f"{STUDY}/data/inputs.npy",
            moves=f"{STUDY}/data/moves.parquet",
            stages=batch.paths(f"{STUDY}/runs/{{run}}/stage-{{stage}}.json", batch.stage_numbers),
        output:
            batch.paths(f"{STUDY}/evaluation/{{run}}/predictions.parquet"),
            batch.paths(f"{STUDY}/evaluation/{{run}}/matrix.parquet"),
        log:
            f"{STUDY}/telemetry/logs/evaluate/{batch.name}.log",
        threads: study.numerics.threads
        params:
            study=study.study,
            method=batch.method,
            shared=lambda wildcards, batch=batch: grid.shared(batch.method),
            units=lambda wildcards, batch=batch: batch.units,
        shell:
            "palimpsest stage evaluate --study results/{params.study} --code plan/code/evaluate/{params.method}.json"
            " --method {params.method} --shared {params.shared:q} --units {params.units:q} > {log} 2>&1"

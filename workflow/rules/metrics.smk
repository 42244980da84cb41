for batch in BATCHES:

    rule:
        name:
            f"metrics_{batch.name}"
        input:
            code=f"{STUDY}/plan/code/rules/metrics.json",
            units=f"{STUDY}/plan/units.parquet",
            matrices=batch.paths(f"{STUDY}/evaluation/{{run}}/matrix.parquet"),
            outcomes=batch.paths(f"{STUDY}/runs/{{run}}/outcome.parquet"),
            recorded=[batch.paths(f"{STUDY}/{path}") for path in grid.recorded_tables(batch.method)],
            references=[f"{STUDY}/evaluation/{run}/matrix.parquet" for run in grid.reference_runs(batch)],
        output:
            batch.paths(f"{STUDY}/metrics/{{run}}.parquet"),
        log:
            f"{STUDY}/telemetry/logs/metrics/{batch.name}.log",
        params:
            study=study.study,
            schedule=grid.schedule(batch.method),
            runs=json.dumps([run.run for run in batch.runs]),
            references=lambda wildcards, batch=batch: json.dumps(grid.references(batch)),
            protocols=json.dumps(grid.protocols),
            boundaries=grid.boundaries,
        shell:
            "palimpsest stage metrics --study results/{params.study} --code plan/code/rules/metrics.json"
            " --schedule {params.schedule} --runs {params.runs:q} --references {params.references:q}"
            " --protocols {params.protocols:q} --boundaries {params.boundaries} > {log} 2>&1"

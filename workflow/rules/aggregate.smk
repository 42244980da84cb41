rule aggregate:
    input:
        code=f"{STUDY}/plan/code/rules/aggregate.json",
        units=f"{STUDY}/plan/units.parquet",
        ledger=[f"{STUDY}/audit/ledger/{method}.parquet" for method in grid.methods],
    output:
        f"{STUDY}/aggregate/metrics.parquet",
        f"{STUDY}/aggregate/summary.parquet",
        f"{STUDY}/aggregate/matrix.parquet",
        f"{STUDY}/aggregate/costs.parquet",
        f"{STUDY}/aggregate/curves.parquet",
        f"{STUDY}/aggregate/failures.parquet",
    log:
        f"{STUDY}/telemetry/logs/aggregate.log",
    params:
        study=study.study,
        methods=json.dumps(grid.methods),
    shell:
        "palimpsest stage aggregate --study results/{params.study} --code plan/code/rules/aggregate.json"
        " --methods {params.methods:q} > {log} 2>&1"

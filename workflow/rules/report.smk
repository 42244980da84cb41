rule report:
    input:
        code=f"{STUDY}/plan/code/rules/report.json",
        lock=f"{STUDY}/plan/lock.json",
        samples=f"{STUDY}/data/samples.parquet",
        manifest=[f"{STUDY}/data/manifest/{table}.parquet" for table in ("classes", "duplicates", "tiers")],
        tables=[
            f"{STUDY}/aggregate/{table}.parquet"
            for table in ("metrics", "summary", "matrix", "costs", "curves", "failures")
        ],
        statistics=[f"{STUDY}/statistics/{table}.parquet" for table in ("comparisons", "orders", "decisions")],
        root=f"{STUDY}/audit/root.json",
    output:
        f"{STUDY}/report/index.html",
        # Of telemetry, and so without a record: it may differ between two runs of the plan.
        f"{STUDY}/report/costs.html",
    log:
        f"{STUDY}/telemetry/logs/report.log",
    params:
        study=study.study,
        # Not told to the report, which reads it among the telemetry, but a reason to make it again.
        publication=lambda wildcards: history.publication.decode(),
    shell:
        "palimpsest stage report --study results/{params.study} --code plan/code/rules/report.json > {log} 2>&1"

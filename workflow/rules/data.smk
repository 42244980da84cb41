rule data:
    input:
        code=f"{STUDY}/plan/code/rules/data.json",
    output:
        f"{STUDY}/data/samples.parquet",
        f"{STUDY}/data/inputs.npy",
        f"{STUDY}/data/moves.parquet",
    log:
        f"{STUDY}/telemetry/logs/data.log",
    params:
        study=study.study,
        benchmark=lambda wildcards: grid.benchmark,
    shell:
        "palimpsest stage data --study results/{params.study} --code plan/code/rules/data.json"
        " --benchmark {params.benchmark:q} > {log} 2>&1"

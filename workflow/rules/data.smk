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


rule manifest:
    input:
        code=f"{STUDY}/plan/code/rules/manifest.json",
        samples=f"{STUDY}/data/samples.parquet",
        inputs=f"{STUDY}/data/inputs.npy",
    output:
        f"{STUDY}/data/manifest/classes.parquet",
        f"{STUDY}/data/manifest/duplicates.parquet",
        f"{STUDY}/data/manifest/tiers.parquet",
    log:
        f"{STUDY}/telemetry/logs/manifest.log",
    params:
        study=study.study,
    shell:
        "palimpsest stage manifest --study results/{params.study} --code plan/code/rules/manifest.json > {log} 2>&1"

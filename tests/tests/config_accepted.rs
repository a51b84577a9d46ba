//! The configurations of `envoy/` as an operator loads them, and policies that Envoy must refuse.

mod support;

use anyhow::Result;
use support::{config, example, shipped, start, start_local};
use weir_lab::http::Client;

#[tokio::test]
async fn every_example_loads_and_limits() -> Result<()> {
    for (name, limited, free) in
        [("local.yaml", "/api/hello", None), ("demo.yaml", "/api/hello", Some("/"))]
    {
        let mut config = config(name, &shipped())?;
        let policy = config.policy("ingress")?.replace("1000/minute", "4/second");
        config.set_policy("ingress", &policy)?;
        let running = start(config, 2).await?;
        let mut client = Client::connect(running.envoy.address("ingress")?).await?;
        let mut refused = 0;
        for _ in 0..40 {
            let answer = client.get(limited, &[("x-api-key", b"alice")]).await?;
            refused += u32::from(answer.status == 429);
        }
        assert!(refused > 0, "{name} refuses nothing");
        if let Some(path) = free {
            assert_ne!(client.get(path, &[("x-api-key", b"alice")]).await?.status, 429, "{name}");
        }
    }
    Ok(())
}

#[test]
fn every_example_is_in_the_test_above() -> Result<()> {
    let mut names: Vec<_> = std::fs::read_dir(example(""))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    names.sort();
    assert_eq!(names, ["demo.yaml", "local.yaml"]);
    Ok(())
}

#[tokio::test]
async fn a_wrong_policy_is_refused_at_start_with_every_fault_in_one_message() {
    let policy = r#"{"limits":[{"name":"","key":["hdr:x"],"rte":"1/second"}],"namespace":7}"#;
    let Err(error) = start_local(policy, 1).await else { panic!("Envoy started") };
    let log = format!("{error:#}");
    let message = log.split("weir: the policy is refused: ").nth(1).unwrap_or_default();
    for path in ["namespace", "limits[0].name", "limits[0].key[0]", "limits[0].rate", "\"rte\""] {
        assert!(message.contains(path), "{path} is not in {log}");
    }
    assert!(message.starts_with("5 faults in the policy:"), "{log}");
}

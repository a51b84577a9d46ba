//! One connection of a link, both ways.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::{mpsc, watch},
};

use super::{Controls, Cut, Shared};
use crate::eventually::reached;

/// The largest chunk that is read at once, in bytes.
const CHUNK: usize = 16 * 1024;

/// Chunks of one direction that may be on their way.
const ON_THE_WAY: usize = 1024;

/// Carries bytes between a client and the target until both directions have ended, one has failed,
/// or the link is cut.
pub(super) async fn carry(mut client: TcpStream, number: u64, shared: Arc<Shared>) {
    let mut controls = shared.controls.subscribe();
    let cut = async {
        let cut = controls.wait_for(|controls| controls.ends(number).is_some()).await;
        cut.ok().and_then(|controls| controls.ends(number)).unwrap_or(Cut::Reset)
    };
    let mut target = None;
    let carried = async {
        let target = target.insert(connect(number, &shared).await?);
        both_ways(&mut client, target, number, &shared).await
    };
    let end = tokio::select! {
        biased;
        how = cut => how,
        ended = carried => if ended.is_ok() { Cut::Close } else { Cut::Reset },
    };
    if end == Cut::Reset {
        for stream in [Some(&client), target.as_ref()].into_iter().flatten() {
            let _ = stream.set_zero_linger();
        }
    }
}

/// A frozen connection reaches nobody, so it does not reach the target either.
async fn connect(number: u64, shared: &Shared) -> io::Result<TcpStream> {
    thawed(number, &mut shared.controls.subscribe()).await;
    let target = shared.controls.borrow().target;
    let target = TcpStream::connect(target).await?;
    target.set_nodelay(true)?;
    Ok(target)
}

async fn both_ways(
    client: &mut TcpStream,
    target: &mut TcpStream,
    number: u64,
    shared: &Shared,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (from_client, to_client) = client.split();
    let (from_target, to_target) = target.split();
    let there = one_way(from_client, to_target, number, &shared.sent, shared);
    let back = one_way(from_target, to_client, number, &shared.received, shared);
    tokio::try_join!(there, back)?;
    Ok(())
}

/// A chunk, or the end, and when it is due.
type OnTheWay = (Instant, Bytes);

/// Carries one direction until its end, which it passes on.
async fn one_way(
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    number: u64,
    carried: &AtomicU64,
    shared: &Shared,
) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel(ON_THE_WAY);
    let reading = read(from, sender, number, shared.controls.subscribe());
    let writing = write(to, receiver, number, carried, shared.controls.subscribe());
    tokio::try_join!(reading, writing)?;
    Ok(())
}

async fn read(
    mut from: ReadHalf<'_>,
    sender: mpsc::Sender<OnTheWay>,
    number: u64,
    mut controls: watch::Receiver<Controls>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = match from.read(&mut buffer).await {
            Ok(length) => length,
            Err(error) => {
                // The other side must not learn of it sooner.
                thawed(number, &mut controls).await;
                return Err(error);
            }
        };
        let due = Instant::now() + controls.borrow().delay;
        let chunk = Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default());
        if sender.send((due, chunk)).await.is_err() || length == 0 {
            return Ok(());
        }
    }
}

async fn write(
    mut to: WriteHalf<'_>,
    mut receiver: mpsc::Receiver<OnTheWay>,
    number: u64,
    carried: &AtomicU64,
    mut controls: watch::Receiver<Controls>,
) -> io::Result<()> {
    while let Some((due, chunk)) = receiver.recv().await {
        reached(due).await;
        thawed(number, &mut controls).await;
        if chunk.is_empty() {
            return to.shutdown().await;
        }
        to.write_all(&chunk).await?;
        carried.fetch_add(chunk.len() as u64, Ordering::SeqCst);
    }
    Ok(())
}

async fn thawed(number: u64, controls: &mut watch::Receiver<Controls>) {
    // An error means that the link is gone; its connections then end too.
    let _ = controls.wait_for(|controls| number >= controls.frozen_below).await;
}

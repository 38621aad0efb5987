//! Where the admin server is reached: a TCP address or a Unix socket.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::access::Way;
use super::admin::Admin;
use super::limits;
use crate::config::AdminAddress;

/// A socket that listens, not yet served.
pub(super) enum Listener {
    Tcp(std::net::TcpListener),
    Unix(StdUnixListener, SocketFile),
}

/// The file of a Unix socket; removed when this is dropped, if it still is this socket's.
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Connections that wait for the accept. When full: the system refuses them.
const BACKLOG: i32 = 128;

/// Nobody but the user the proxy runs as: who may connect may change what it does.
const SOCKET_MODE: u32 = 0o600;

impl Listener {
    /// Errors: the address is taken or forbidden; the path is no socket's, or somebody listens there.
    pub(super) fn bind(address: &AdminAddress) -> io::Result<Listener> {
        match address {
            AdminAddress::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address)
                    .map_err(|error| named(&address.to_string(), error))?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Tcp(listener))
            }
            AdminAddress::Unix(path) => {
                let bound = bind_unix(path);
                let (listener, file) =
                    bound.map_err(|error| named(&path.display().to_string(), error))?;
                Ok(Listener::Unix(listener, file))
            }
        }
    }

    /// Where it listens, the port filled in.
    pub(super) fn address(&self) -> io::Result<AdminAddress> {
        match self {
            Listener::Tcp(listener) => Ok(AdminAddress::Tcp(listener.local_addr()?)),
            Listener::Unix(_, file) => Ok(AdminAddress::Unix(file.path.clone())),
        }
    }

    /// Accepts and answers until it is dropped.
    pub(super) async fn serve(self, admin: Arc<Admin>) {
        let served = match self {
            Listener::Tcp(listener) => serve_tcp(listener, admin).await,
            Listener::Unix(listener, file) => serve_unix(listener, file, admin).await,
        };
        let Err(error) = served;
        tracing::error!(%error, "the admin address is not served");
    }
}

async fn serve_tcp(listener: std::net::TcpListener, admin: Arc<Admin>) -> io::Result<Infallible> {
    let listener = TcpListener::from_std(listener)?;
    let slots = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
    loop {
        let slot = slot(&slots).await;
        match listener.accept().await {
            Ok((stream, _)) => {
                drop(tokio::spawn(connection(stream, Way::Tcp, admin.clone(), slot)))
            }
            Err(error) => accept_failed(&error).await,
        }
    }
}

async fn serve_unix(
    listener: StdUnixListener,
    _file: SocketFile,
    admin: Arc<Admin>,
) -> io::Result<Infallible> {
    let listener = UnixListener::from_std(listener)?;
    let slots = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
    loop {
        let slot = slot(&slots).await;
        match listener.accept().await {
            Ok((stream, _)) => {
                drop(tokio::spawn(connection(stream, Way::Unix, admin.clone(), slot)));
            }
            Err(error) => accept_failed(&error).await,
        }
    }
}

async fn slot(slots: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    slots.clone().acquire_owned().await.expect("nobody closes it")
}

async fn accept_failed(error: &io::Error) {
    tracing::warn!(%error, "the admin address could not accept");
    sleep(limits::ACCEPT_PAUSE).await;
}

/// A stream that tokio can watch.
trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl Transport for TcpStream {}
impl Transport for UnixStream {}

/// One exchange. A connection is not kept: each then has one bound for all that its peer may do,
/// and 64 that say nothing are gone after `HEAD_BOUND`.
async fn connection(
    stream: impl Transport,
    way: Way,
    admin: Arc<Admin>,
    _slot: OwnedSemaphorePermit,
) {
    let service = service_fn(move |request| {
        let admin = admin.clone();
        async move { Ok::<_, Infallible>(admin.answer(request, way).await) }
    });
    let exchange = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_BOUND)
        .max_buf_size(limits::HEAD_BYTES_MAX)
        .max_headers(limits::FIELDS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(limits::CONNECTION_BOUND, exchange).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "an exchange of the admin address failed"),
        Err(_) => tracing::debug!("an exchange of the admin address took too long"),
    }
}

/// Bound, given its mode, and only then listening: at no time may another user connect.
fn bind_unix(path: &Path) -> io::Result<(StdUnixListener, SocketFile)> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let metadata = fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.to_owned(), device: metadata.dev(), inode: metadata.ino() };
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok((socket.into(), file))
}

/// Removes a socket that a process left behind. Errors: what is there is no socket, or lives.
fn remove_stale(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        let text = "there is a file that is no socket; remove it or choose another path";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    match StdUnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        // Gone in the meantime.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens on this socket"))
        }
    }
}

fn named(address: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on admin address {address}: {error}"))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| metadata.dev() == self.device && metadata.ino() == self.inode);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the admin socket stays behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder for one test, removed with what is in it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("baton-admin-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
            Folder(folder)
        }

        fn socket(&self) -> PathBuf {
            self.0.join("admin.sock")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("it is this test's");
        }
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let folder = Folder::new("no-socket");
        let path = folder.socket();
        fs::write(&path, "precious").expect("writable");
        let error = bind_unix(&path).err().expect("refused");
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "precious");
    }

    #[test]
    fn a_socket_that_somebody_listens_on_is_left_alone() {
        let folder = Folder::new("alive");
        let path = folder.socket();
        let first = bind_unix(&path).expect("the path is free");
        let error = bind_unix(&path).err().expect("refused");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
        drop(first);
        assert!(!path.exists(), "removed at the end");
    }

    #[test]
    fn a_socket_left_behind_is_replaced_and_is_for_its_user_alone() {
        let folder = Folder::new("stale");
        let path = folder.socket();
        let left = StdUnixListener::bind(&path).expect("the path is free");
        drop(left);
        assert!(path.exists(), "the standard library leaves it behind");
        let (_listener, _file) = bind_unix(&path).expect("nobody listens there");
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, SOCKET_MODE);
    }

    #[test]
    fn a_socket_that_another_process_put_in_its_place_is_not_removed() {
        let folder = Folder::new("replaced");
        let path = folder.socket();
        let (listener, file) = bind_unix(&path).expect("the path is free");
        drop(listener);
        let second = path.with_extension("next");
        let _next = StdUnixListener::bind(&second).expect("the path is free");
        fs::rename(&second, &path).expect("in one folder");
        drop(file);
        assert!(path.exists());
    }

    #[test]
    fn a_path_that_is_too_long_says_so() {
        let path = PathBuf::from(format!("/tmp/{}", "x".repeat(200)));
        let error = Listener::bind(&AdminAddress::Unix(path)).err().expect("refused");
        assert!(error.to_string().starts_with("cannot listen on admin address /tmp/xxx"));
    }
}

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use baton_platform::{connect, take_socket_error};
use socket2::{Domain, Socket, Type};

use crate::support::{is_closed_on_exec, is_nonblocking, wait_for};

#[test]
fn a_refused_connection_is_an_error_at_once_or_on_the_socket() {
    // A port that is bound but does not listen refuses, and nobody else can take it meanwhile.
    let bound = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    bound.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let address = bound.local_addr().unwrap().as_socket().unwrap();

    let error = match connect(address) {
        Err(error) => error,
        Ok((socket, _)) => {
            wait_for(&[&socket], libc::POLLOUT);
            take_socket_error(socket.as_fd()).unwrap().unwrap()
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_connection_reaches_a_listener() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (socket, _) = connect(listener.local_addr().unwrap()).unwrap();
    assert!(is_nonblocking(&socket));
    assert!(is_closed_on_exec(&socket));

    let (_accepted, peer) = listener.accept().unwrap();
    wait_for(&[&socket], libc::POLLOUT);
    assert!(take_socket_error(socket.as_fd()).unwrap().is_none());
    assert_eq!(TcpStream::from(socket).local_addr().unwrap(), peer);
}

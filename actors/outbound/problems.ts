/** The failures of a connection to another service, with their texts for people. Pure. */
import { Data } from "effect"

/** The address may not be reached; nothing was sent. */
export class ForbiddenAddress extends Data.TaggedError("ForbiddenAddress") {}

/** A failed connection. `isLocal` is true if this node is the cause, not the peer. */
export class ConnectionFailure extends Data.TaggedError("ConnectionFailure")<{
  readonly problem: string
  readonly isLocal: boolean
}> {}

export const connectionFailure = (problem: string, isLocal = false): ConnectionFailure =>
  new ConnectionFailure({ problem, isLocal })

/** The same text whether or not anything listens at the address. */
export const notAllowed =
  "the address is not allowed: it is not public, and OUTBOUND_ALLOW does not permit it"

/** An address that the operator allows is allowed with all its ports. */
export const portNotAllowed =
  "the port is not allowed: it is one of another protocol, and OUTBOUND_ALLOW does not permit " +
  "the address"

export const noAnswerInTime = "no answer in time"

export const connectTimedOut = "could not connect in time"

export const nameTimedOut = "the name was not resolved in time"

const badCertificate = (why: string): string => `the certificate is not valid: ${why}`

const reset = "the connection was reset"

const unreachable = "the host cannot be reached"

const notHttp = "the answer is not valid HTTP"

const issuer = badCertificate("its issuer is not known")

const selfSigned = badCertificate("self-signed")

/** Problems by the codes of Node, OpenSSL and undici. */
const problems: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: reset,
  ECONNABORTED: reset,
  EPIPE: reset,
  UND_ERR_SOCKET: reset,
  ETIMEDOUT: connectTimedOut,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  ENETDOWN: unreachable,
  EHOSTDOWN: unreachable,
  EADDRNOTAVAIL: unreachable,
  EACCES: unreachable,
  EPERM: unreachable,
  EINVAL: unreachable,
  EAFNOSUPPORT: unreachable,
  UND_ERR_HEADERS_OVERFLOW: "the answer's header block is too large",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: notHttp,
  CERT_HAS_EXPIRED: badCertificate("expired"),
  CERT_NOT_YET_VALID: badCertificate("not valid yet"),
  CERT_REVOKED: badCertificate("revoked"),
  ERR_TLS_CERT_ALTNAME_INVALID: badCertificate("it is for another host"),
  HOSTNAME_MISMATCH: badCertificate("it is for another host"),
  DEPTH_ZERO_SELF_SIGNED_CERT: selfSigned,
  SELF_SIGNED_CERT_IN_CHAIN: selfSigned,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: issuer,
  UNABLE_TO_GET_ISSUER_CERT: issuer,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: issuer,
  CERT_UNTRUSTED: issuer
}

/** This node has run out of sockets, files or memory. */
const localCodes = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "UND_ERR_DESTROYED"])

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : ""

/** The failure of a transport error. */
export const connectionFailureOf = (error: unknown): ConnectionFailure => {
  if (error instanceof ConnectionFailure) return error
  const code = codeOf(error)
  const problem = problems[code]
  if (problem !== undefined) return connectionFailure(problem)
  if (localCodes.has(code)) {
    return connectionFailure("this service can open no more connections", true)
  }
  if (error instanceof Error && error.name === "HTTPParserError") return connectionFailure(notHttp)
  if (/^(ERR_SSL_|ERR_TLS_|EPROTO$)/.test(code)) {
    return connectionFailure("the TLS handshake failed")
  }
  if (/CERT|CRL|CHAIN/.test(code)) return connectionFailure(badCertificate("it cannot be verified"))
  return connectionFailure("the connection failed")
}

/** The failure of a name resolution, by the codes of c-ares. */
export const nameFailureOf = (error: unknown): ConnectionFailure => {
  switch (codeOf(error)) {
    case "ENOTFOUND":
      return connectionFailure("name not found")
    case "ENODATA":
      return connectionFailure("the name has no address")
    case "ETIMEOUT":
      return connectionFailure(nameTimedOut)
    case "EBADNAME":
      return connectionFailure("the name is not valid")
    case "ECANCELLED":
      return connectionFailure(nameTimedOut, true)
    default:
      return connectionFailure("the name server failed")
  }
}

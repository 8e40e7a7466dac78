/** What goes wrong on the way to another service, in plain words. Pure. */
import { Data } from "effect"

/** The address may not be reached; nothing was sent. */
export class ForbiddenAddress extends Data.TaggedError("ForbiddenAddress") {}

/** A fault with its words. `own` is true when this node is to blame, not the peer. */
export class OutboundFault extends Data.TaggedError("OutboundFault")<{
  readonly problem: string
  readonly own: boolean
}> {}

export const fault = (problem: string, own = false): OutboundFault =>
  new OutboundFault({ problem, own })

/** The same words whatever is, or is not, at the address. */
export const notAllowed = "the address is not allowed"

export const noLongerWanted = "no longer wanted"

export const noAnswerInTime = "no answer in time"

export const notConnectedInTime = "could not connect in time"

export const nameInTime = "the name was not resolved in time"

const bad = (why: string): string => `the certificate is not valid: ${why}`

const reset = "the connection was reset"

const unreachable = "the host cannot be reached"

const notHttp = "the answer is not valid HTTP"

const issuer = bad("its issuer is not known")

const selfSigned = bad("self-signed")

/** Codes of Node, OpenSSL and undici. */
const known: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: reset,
  ECONNABORTED: reset,
  EPIPE: reset,
  UND_ERR_SOCKET: reset,
  ETIMEDOUT: notConnectedInTime,
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
  CERT_HAS_EXPIRED: bad("expired"),
  CERT_NOT_YET_VALID: bad("not valid yet"),
  CERT_REVOKED: bad("revoked"),
  ERR_TLS_CERT_ALTNAME_INVALID: bad("it is for another host"),
  HOSTNAME_MISMATCH: bad("it is for another host"),
  DEPTH_ZERO_SELF_SIGNED_CERT: selfSigned,
  SELF_SIGNED_CERT_IN_CHAIN: selfSigned,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: issuer,
  UNABLE_TO_GET_ISSUER_CERT: issuer,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: issuer,
  CERT_UNTRUSTED: issuer
}

/** Codes that say that this node has run out of something. */
const own = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "UND_ERR_DESTROYED"])

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : ""

/** A transport error as a fault. */
export const faultOf = (error: unknown): OutboundFault => {
  if (error instanceof OutboundFault) return error
  const code = codeOf(error)
  const words = known[code]
  if (words !== undefined) return fault(words)
  if (own.has(code)) return fault("this service can open no more connections", true)
  if (error instanceof Error && error.name === "HTTPParserError") return fault(notHttp)
  if (/^(ERR_SSL_|ERR_TLS_|EPROTO$)/.test(code)) return fault("TLS could not be agreed upon")
  if (/CERT|CRL|CHAIN/.test(code)) return fault(bad("it cannot be verified"))
  return fault("the connection failed")
}

/** A failed look-up as a fault (codes of c-ares). */
export const nameFaultOf = (error: unknown): OutboundFault => {
  switch (codeOf(error)) {
    case "ENOTFOUND":
      return fault("name not found")
    case "ENODATA":
      return fault("the name has no address")
    case "ETIMEOUT":
      return fault(nameInTime)
    case "EBADNAME":
      return fault("the name is not valid")
    case "ECANCELLED":
      return fault(nameInTime, true)
    default:
      return fault("the name server failed")
  }
}

/**
 * The native module of uWebSockets.js, in two packages: neither has binaries for all versions of
 * Node.js. docs/platforms.md describes where each one runs.
 */
import { createRequire } from "node:module"
import { headerBlockBytesMax } from "../limits.ts"

export type { HttpRequest as NativeRequest, HttpResponse,
  us_listen_socket as ListenSocket } from "uws-node-20-22"

/** The native module does not load, or the address is not available. */
export class ServerUnavailable extends Error {
  readonly _tag = "ServerUnavailable"
  readonly reason: "NativeModule" | "Address"
  constructor(reason: "NativeModule" | "Address", message: string, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
  }
}

type Native = typeof import("uws-node-20-22")

/** The package for each version of Node's module interface. */
const packages: Readonly<Record<string, string>> = {
  /** Node 20. */
  115: "uws-node-20-22",
  /** Node 22. */
  127: "uws-node-20-22",
  /** Node 24. */
  137: "uws-node-24-26",
  /** Node 26. */
  147: "uws-node-24-26"
}

const required = (version: string): Native & { _cfg?: (option: string) => void } => {
  const name = packages[version]
  if (name === undefined) throw new Error(`there is no binary for modules of version ${version}`)
  // `require` has no types; those of the module describe what it returns.
  return createRequire(import.meta.url)(name) as Native
}

/** The library lists what it supports, then the reason, then the paths that it tried. */
const reasonOf = (cause: unknown): string =>
  String(cause).split("\n\n").at(-1)?.split("\n")[0] ?? ""

/**
 * Loads the native module, which reads the size of its header buffer from the environment. That
 * size only bounds header blocks that arrive in several pieces; `framingOf` checks all of them.
 * Throws `ServerUnavailable` with the reason `NativeModule`.
 */
export const loadNative = (): Native => {
  process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= String(headerBlockBytesMax)
  try {
    const native = required(process.versions.modules)
    native._cfg?.("silent")
    return native
  } catch (cause) {
    throw new ServerUnavailable(
      "NativeModule",
      `uWebSockets.js cannot be loaded by Node ${process.version} on ${process.platform} `
        + `${process.arch}: ${reasonOf(cause)}\nIt needs Node 20, 22, 24 or 26 and, on Linux, `
        + "glibc: 2.27 or newer for Node 20 and 22, 2.38 or newer (Debian 13, Ubuntu 24.04) for "
        + "Node 24 and 26; not musl (Alpine). If another Node installed the packages, install them "
        + "again with `npm ci`. Else take Node 20 or 22, a newer system, or the container image; "
        + "see docs/platforms.md.",
      cause
    )
  }
}

/** Throws `ServerUnavailable` if the native module does not load, before anything is opened. */
export const assertNative = (): void => void loadNative()

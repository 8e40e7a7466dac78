/** A request as plain values, and the faults of its body. */

/** A request. `path` is raw (not decoded) and without the query; `query` is without its `?`. */
export interface HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: RequestHeaders
  /** The address of the connection's peer, which may be a proxy. */
  readonly remoteAddress: string
}

/** Request fields as name, value, name, value …; names in lower case. */
export class RequestHeaders {
  readonly #flat: ReadonlyArray<string>

  constructor(flat: ReadonlyArray<string>) {
    this.#flat = flat
  }

  /** The value of a field by its lower-case name; several lines are joined by commas. */
  get(name: string): string | undefined {
    const flat = this.#flat
    let value: string | undefined
    for (let index = 0; index < flat.length; index += 2) {
      if (flat[index] !== name) continue
      const line = flat[index + 1] ?? ""
      value = value === undefined ? line : `${value}, ${line}`
    }
    return value
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }
}

/** Why a body did not arrive completely. After `Aborted` the client is gone. */
export type BodyFault =
  | { readonly _tag: "TooLarge"; readonly bytesMax: number }
  | { readonly _tag: "Aborted" | "Timeout" }

/** A {@link BodyFault} as the error that `Exchange.stream` throws. */
export class BodyError extends Error {
  readonly _tag: BodyFault["_tag"]
  constructor(tag: BodyFault["_tag"]) {
    super(`the request body: ${tag}`)
    this._tag = tag
  }
}

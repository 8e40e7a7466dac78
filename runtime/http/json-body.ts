/** The body of a request as JSON: bounded, in UTF-8, and of values that messages may have. */

/** Nested arrays and objects in a message, at most: a Schema is checked by recursion. */
const depthMax = 64

/** The media type and the coding of a body; undefined when both are known. */
export const mediaTypeFault = ({ headers }: Request): string | undefined => {
  const [type = "", ...parameters] = (headers.get("content-type") ?? "").toLowerCase().split(";")
  const isJson = type.trim() === "application/json"
  const isUtf8 = parameters.every((parameter) =>
    !parameter.trim().startsWith("charset=") || /^\s*charset="?utf-8"?\s*$/.test(parameter)
  )
  if (!isJson || !isUtf8) return "the message is not application/json in UTF-8: set Content-Type"
  const coding = (headers.get("content-encoding") ?? "identity").trim().toLowerCase()
  return coding === "identity" ? undefined : "the message is compressed: send it as it is"
}

/** The bytes of a body; or why they are not a message. */
export type ReadBody =
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
  /** It has more than it may have. The rest is not read: that is up to the server. */
  | { readonly _tag: "TooLarge" }
  /** The connection ended before it did. */
  | { readonly _tag: "Ended" }

const firstBytes = 1024

/** The bytes of a body: copied, since a part of one byte may hold thousands. */
class BodyBytes {
  private whole = new Uint8Array(firstBytes)
  private length = 0

  add(part: Uint8Array): void {
    const length = this.length + part.byteLength
    if (length > this.whole.byteLength) {
      const larger = new Uint8Array(Math.max(length, 2 * this.whole.byteLength))
      larger.set(this.bytes())
      this.whole = larger
    }
    this.whole.set(part, this.length)
    this.length = length
  }

  bytes(): Uint8Array {
    return this.whole.subarray(0, this.length)
  }
}

/** Reads a body of `bytesMax` bytes at most. */
export const readBody = async (request: Request, bytesMax: number): Promise<ReadBody> => {
  if (Number(request.headers.get("content-length") ?? 0) > bytesMax) return { _tag: "TooLarge" }
  // The types of a body name no type for its parts; those of a request are bytes.
  const reader = (request.body as ReadableStream<Uint8Array> | null)?.getReader()
  if (reader === undefined) return { _tag: "Bytes", bytes: new Uint8Array() }
  const read = new BodyBytes()
  let bytes = 0
  for (;;) {
    const part = await reader.read().catch(() => undefined)
    if (part === undefined) return { _tag: "Ended" }
    if (part.done) return { _tag: "Bytes", bytes: read.bytes() }
    bytes += part.value.byteLength
    if (bytes > bytesMax) return { _tag: "TooLarge" }
    read.add(part.value)
  }
}

/** JSON of these bytes; undefined when they are not JSON, for which JSON has no value. */
export const parsedJson = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

/**
 * Why a value is none of a message; undefined when it is one. JSON has numbers that JavaScript has
 * not, such as 1e999, and they would change on the way to another node.
 */
export const valueFault = (value: unknown): string | undefined => {
  const rest: Array<readonly [value: unknown, depth: number]> = [[value, 0]]
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const [one, depth] = next
    if (typeof one === "number" && !Number.isFinite(one)) return "a number is out of range"
    if (typeof one !== "object" || one === null) continue
    if (depth === depthMax) return `more than ${depthMax} arrays and objects are nested`
    for (const part of Object.values(one)) rest.push([part, depth + 1])
  }
  return undefined
}

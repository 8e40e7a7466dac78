/** Undoes a Content-Encoding that was not asked for, within bounds. */
import { promisify } from "node:util"
import { brotliDecompress, gunzip, inflate } from "node:zlib"
import { Effect } from "effect"

/** The body as it is meant; or why there is none. */
export type Decoded =
  | { readonly _tag: "Decoded"; readonly bytes: Uint8Array }
  | { readonly _tag: "TooLarge" }
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "Damaged" }

const decoders = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress)
}
const isKnown = (encoding: string): encoding is keyof typeof decoders =>
  Object.hasOwn(decoders, encoding)

const isTooLarge = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE"

/** Decompresses to at most `bytesMax`, and stops where there would be more. */
export const decoded = (
  encoding: string | undefined,
  bytes: Uint8Array,
  bytesMax: number
): Effect.Effect<Decoded> => {
  const name = (encoding ?? "identity").trim().toLowerCase()
  if (name === "identity" || name === "") return Effect.succeed({ _tag: "Decoded", bytes })
  if (!isKnown(name)) return Effect.succeed({ _tag: "Unknown" })
  return Effect.tryPromise(() => decoders[name](bytes, { maxOutputLength: Math.max(1, bytesMax) }))
    .pipe(
      Effect.match({
        onSuccess: (plain): Decoded =>
          plain.length > bytesMax ? { _tag: "TooLarge" } : { _tag: "Decoded", bytes: plain },
        onFailure: ({ cause }): Decoded => ({ _tag: isTooLarge(cause) ? "TooLarge" : "Damaged" })
      })
    )
}

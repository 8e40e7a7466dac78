/** An open store as an archive. */
import { version } from "../version.ts"
import { Encoder, type Header, headerOf } from "./archive-format.ts"
import { type ArchiveSource, partsOf } from "./store-reader.ts"

/** All of a store as it is read; it may be in use. */
export const archiveOf = (
  source: ArchiveSource & { readonly kind: Header["source"] },
  encoder = new Encoder()
): AsyncIterable<Uint8Array> =>
  encoder.encode(headerOf(version, source.kind, Date.now()), partsOf(source))

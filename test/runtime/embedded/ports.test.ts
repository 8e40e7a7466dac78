/** The contracts of the ports, on the embedded backend with each database. */
import type { Context } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { embedded, type EngineName, engineNames } from "../../../runtime/embedded/index.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { Records } from "../../../runtime/ports/records.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { Transport } from "../../../runtime/ports/transport.ts"
import { blobsSuite } from "../../suites/blobs.ts"
import { type Fresh, fromLayer } from "../../suites/harness.ts"
import { recordsSuite } from "../../suites/records.ts"
import { storageSuite } from "../../suites/storage.ts"
import { transportSuite } from "../../suites/transport.ts"

const onDisk = <Id extends Storage | Records | Blobs | Transport, Api>(
  service: Context.Key<Id, Api>,
  engine: EngineName
): Fresh<Api> =>
async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "restante-"))
  const discard = () => rm(dataDir, { recursive: true, force: true })
  return fromLayer(service, embedded(dataDir, { engine }), discard)
}

for (const engine of engineNames) {
  storageSuite(engine, onDisk(Storage, engine))
  recordsSuite(engine, onDisk(Records, engine))
  blobsSuite(engine, onDisk(Blobs, engine))
}

transportSuite("embedded", onDisk(Transport, "rocksdb"))

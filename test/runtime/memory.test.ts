/** The contracts of the ports against their in-memory layers. */
import { makeMemoryBlobs } from "../../runtime/memory/blobs.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { makeMemoryTransport } from "../../runtime/memory/transport.ts"
import { blobsSuite } from "../suites/blobs.ts"
import { inMemory } from "../suites/harness.ts"
import { recordsSuite } from "../suites/records.ts"
import { storageSuite } from "../suites/storage.ts"
import { transportSuite } from "../suites/transport.ts"

storageSuite("memory", inMemory(makeMemoryStorage))
recordsSuite("memory", inMemory(makeMemoryRecords))
blobsSuite("memory", inMemory(makeMemoryBlobs))
transportSuite("memory", inMemory(makeMemoryTransport))

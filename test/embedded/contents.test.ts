/** The contents port on the embedded store. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { embedded } from "../../runtime/embedded/index.ts"
import { contentsSuite } from "../suites/contents.ts"

const dataDir = mkdtempSync(join(tmpdir(), "restante-contents-"))

contentsSuite("RocksDB", () => embedded(dataDir), async () => {
  rmSync(dataDir, { recursive: true, force: true })
})

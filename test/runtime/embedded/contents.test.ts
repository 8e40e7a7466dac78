/** The contents port on the embedded store. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { embedded, engineNames } from "../../../runtime/embedded/index.ts"
import { contentsSuite } from "../../suites/contents.ts"

for (const engine of engineNames) {
  const dataDir = mkdtempSync(join(tmpdir(), "restante-contents-"))
  contentsSuite(engine, () => embedded(dataDir, { engine }), async () => {
    rmSync(dataDir, { recursive: true, force: true })
  })
}

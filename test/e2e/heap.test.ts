/** The heap of a serving process, as V8's own trace of its collections shows it. */
import { afterAll, expect, it } from "vitest"
import { heapGrowthPercent } from "../../deploy/limits.ts"
import { expectStatus, send } from "./client.ts"
import { binary, cleanUp, start } from "./process.ts"

const body = Buffer.alloc(1024 * 1024, "x")
/** Far more than the process can hold without a collection. */
const uploadsMax = 1_000

afterAll(cleanUp)

it("grows by half at most between collections", async () => {
  const service = await start({ script: ["--trace-gc-verbose", binary, "serve"] })
  const factors = (): ReadonlyArray<string> =>
    [...service.output.matchAll(/\[HeapController\] Limit: .* \((\d+\.\d)\)/g)].map(
      ([, factor = ""]) => factor
    )
  // Collections before the start may have been under V8's own rule.
  const before = factors().length
  for (let n = 0; n < uploadsMax && factors().length < before + 3; n++) {
    expectStatus(await send(service.url, "/content", { method: "POST", body }), 202)
  }
  const expected = (1 + heapGrowthPercent / 100).toFixed(1)
  expect(factors().length).toBeGreaterThanOrEqual(before + 3)
  expect(new Set(factors().slice(before))).toEqual(new Set([expected]))
  expect((await service.stop()).code).toBe(0)
})

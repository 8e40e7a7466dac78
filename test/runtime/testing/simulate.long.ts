/** Many seeds of the small actors: none fails, so no fault is one of the simulator itself. */
import { expect, it } from "vitest"
import { simulate } from "../../../runtime/testing/index.ts"
import { reminder } from "./actors.ts"
import { banking, remind } from "./simulations.ts"

const seeds = 1_000

it.each([
  ["accounts", () => simulate({ ...banking, model: "table", seeds })],
  ["reminders", () => remind((host, mails) => [reminder(host, mails)], seeds)]
])("simulations of %s are well", async (_, run) => {
  const { answered, requests } = await run()
  expect(answered).toBeGreaterThan(requests / 2)
})

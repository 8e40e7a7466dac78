/** A program that cannot read what the members of its cluster write does not join the cluster. */
import { expect, it } from "vitest"
import { backendFailed } from "../../deploy/backend/index.ts"
import { exitCodes } from "../../deploy/command-failure.ts"
import { formatFailure } from "../../runtime/cluster/cluster-format.ts"

const failureOf = (own: number, value: string | undefined) =>
  formatFailure(own, { key: "format", value, revision: 1 })

it.each([undefined, "1", "2", "unreadable"])(
  "joins a cluster whose raised format is %s",
  (value) => {
    expect(failureOf(2, value)).toBeUndefined()
  }
)

it("reports a newer format, and what to do", () => {
  const failure = failureOf(2, "3")
  if (failure === undefined) throw new Error("format 3 was accepted")
  const { exitCode, message } = backendFailed("nats://a", failure)
  expect(exitCode).toBe(exitCodes.configuration)
  expect(message).toBe(
    "nats://a cannot be opened: its store has states and messages of format 3, and this version " +
      "reads formats 1 to 2. Run the version that wrote the store, which can export it " +
      "(`restante backup <file>`), or start with an empty store (another DATA_DIR or NATS_URL)"
  )
})

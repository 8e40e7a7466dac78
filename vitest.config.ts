import { defineConfig } from "vitest/config"

/** Suites that take minutes are named `*.long.ts` and run with `npm run test:long` only. */
const long = process.env["TEST_LONG"] === "1"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", ...(long ? ["test/**/*.long.ts"] : [])],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    pool: "forks"
  }
})

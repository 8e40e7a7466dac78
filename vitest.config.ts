import { defineConfig } from "vitest/config"

/** Suites that take minutes are named `*.long.ts` and run with `npm run test:long` only. */
const long = process.env["TEST_LONG"] === "1"

/** The black-box suites of HTTP, which run upon each backend. */
const http = "test/http/**/*.test.ts"

/** What differs most between the embedded store's two databases; all of it among the long suites. */
const httpOnLevelDb = long ? http : "test/http/{mailbox,content,customers,sessions}*.test.ts"

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // More than there are processors: many suites wait for processes that start, or for time.
    maxWorkers: 3,
    pool: "forks",
    projects: [
      {
        extends: true,
        test: {
          name: "memory",
          include: ["test/**/*.test.ts", ...(long ? ["test/**/*.long.ts"] : [])]
        }
      },
      {
        extends: true,
        test: { name: "embedded", include: [http], env: { TEST_BACKEND: "embedded" } }
      },
      {
        extends: true,
        test: { name: "leveldb", include: [httpOnLevelDb], env: { TEST_BACKEND: "leveldb" } }
      },
      {
        extends: true,
        test: {
          name: "nats",
          include: [http],
          env: { TEST_BACKEND: "nats" },
          globalSetup: "test/http/nats-setup.ts"
        }
      },
      {
        extends: true,
        test: {
          name: "cluster",
          include: [http],
          env: { TEST_BACKEND: "cluster" },
          globalSetup: "test/http/nats-setup.ts"
        }
      }
    ]
  }
})

import { defineConfig } from "vitest/config"

/** Suites that take minutes are named `*.long.ts` and run with `npm run test:long` only. */
const long = process.env["TEST_LONG"] === "1"
/** The soak is measured: `TEST_LONG=soak` runs it and nothing beside it. */
const soak = "test/disk/soak.long.ts"
const onlySoak = process.env["TEST_LONG"] === "soak"

/** The black-box suites of HTTP, which run upon each backend. */
const http = "test/http/**/*.test.ts"

/**
 * The suites of one backend share their processes: each file needs the same modules, and makes a
 * service of its own.
 */
const onBackend = (name: string, include: string, globalSetup?: string) => ({
  extends: true as const,
  test: {
    name,
    include: [include],
    isolate: false,
    env: { TEST_BACKEND: name },
    ...(globalSetup === undefined ? {} : { globalSetup })
  }
})

/** What differs most between the embedded store's two databases; all of it among the long suites. */
const httpOnLevelDb = long ? http : "test/http/{mailbox,content,customers,sessions}*.test.ts"

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // More than there are processors: many suites wait for processes that start, or for time.
    maxWorkers: 4,
    pool: "forks",
    projects: [
      {
        extends: true,
        test: {
          name: "parts",
          globalSetup: "test/bundle.mjs",
          include: onlySoak
            ? [soak]
            : ["test/**/*.test.ts", ...(long ? ["test/**/*.long.ts"] : [])],
          exclude: ["test/http/**", ...(onlySoak ? [] : [soak])]
        }
      },
      onBackend("memory", http),
      onBackend("embedded", http),
      onBackend("leveldb", httpOnLevelDb),
      onBackend("nats", http, "test/http/nats-setup.ts"),
      onBackend("cluster", http, "test/http/nats-setup.ts")
    ]
  }
})

import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/**
 * Suites that take minutes are named `*.long.ts` and run with `npm run test:long` only. That runs
 * what `npm test` does not: these, the suites of HTTP on the other backends, and {@link deeper}.
 */
const long = process.env["TEST_LONG"] === "1"
/** The soak is measured: `TEST_LONG=soak` runs it and nothing beside it. */
const soak = "test/disk/soak.long.ts"
const onlySoak = process.env["TEST_LONG"] === "soak"

/** Paths of suites, and of those among them that do not run. */
interface TestSuites {
  readonly include: Array<string>
  readonly exclude: Array<string>
}

/** The black-box suites of HTTP, which run on each backend. */
const http = "test/http/**/*.test.ts"

/**
 * The suites of one backend share their processes: each file needs the same modules, and makes a
 * service of its own.
 */
const onBackend = (
  name: string,
  suites: TestSuites,
  { globalSetup }: { readonly globalSetup?: string } = {}
) => ({
  extends: true as const,
  test: {
    name,
    ...suites,
    isolate: false,
    env: { TEST_BACKEND: name },
    ...(globalSetup === undefined ? {} : { globalSetup })
  }
})

/** The suites of HTTP that the short form runs on a backend, by name; the long form runs the others. */
const httpSuites = (...names: ReadonlyArray<string>): TestSuites => {
  const named = `test/http/{${names.join(",")}}.test.ts`
  return long ? { include: [http], exclude: [named] } : { include: [named], exclude: [] }
}

/** What differs between stores, for LevelDB and for memory, which no setting selects. */
const httpOnStore = httpSuites("content", "mailbox-cursors", "mailboxes", "sessions")

/** What depends on which of three nodes answers. */
const httpOnCluster = httpSuites(
  "cluster",
  "mailbox-deposit",
  "mailboxes",
  "sessions"
)

/** What writes records of other kinds than these do: one node writes them to NATS. */
const httpOnNats = httpSuites(
  "accounts",
  "background-tasks",
  "cabinets",
  "idempotency",
  "limit-usage",
  "queries",
  "record-formats"
)

/** Suites that try more in the long form: more seeds, positions, steps or kills. */
const deeper = [
  "test/actors/mailbox-properties.test.ts",
  "test/actors/notification-schedule.test.ts",
  "test/actors/registration-properties.test.ts",
  "test/disk/power-loss.test.ts",
  "test/e2e/delivery-crash.test.ts",
  "test/runtime/embedded/corruption.test.ts",
  "test/runtime/embedded/crash.test.ts",
  "test/runtime/embedded/random-corruption.test.ts",
  "test/runtime/placement.test.ts"
]

const natsSetup = { globalSetup: "test/http/nats-setup.ts" }

/** Suites without processes or clocks of their own: they share modules, as those of HTTP do. */
const units = "test/{actors,histories,queries,suites}/**/*.test.ts"

/**
 * They take longest and begin first, in this order, as what begins last must not be waited for
 * alone. Those that compute run beside those that wait for processes.
 */
const longest = [
  "simulation/seeds-1.long",
  "simulation/seeds-2.long",
  "faults/embedded.long",
  "runtime/embedded/random-corruption",
  "simulation/seeds-jetstream.long",
  "simulation/planted",
  "wire/platforms.long",
  "e2e/flows",
  "e2e/failpoints",
  "simulation/seeds-1",
  "faults/cluster",
  "e2e/delivery-failpoints",
  "cluster/containers",
  "simulation/seeds-2",
  "faults/",
  "simulation/",
  "actors/notification-schedule",
  "queries/view-crash",
  "cluster/content-failpoints",
  "runtime/nats/storage",
  "runtime/nats/archive",
  "runtime/nats/log-trim",
  "runtime/embedded/corruption",
  "runtime/embedded/disk-full",
  "e2e/drain"
]

const rankOf = ({ moduleId }: TestSpecification): number => {
  const at = longest.findIndex((part) => moduleId.includes(`/test/${part}`))
  return at === -1 ? longest.length : at
}

class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other))
  }
}

/** The entries of the runtime's package, which the examples import as a user's project does. */
const entryFiles: Readonly<Record<string, string>> = {
  "@restante/runtime": "runtime/main.ts",
  "@restante/runtime/nats": "runtime/nats/main.ts",
  "@restante/runtime/testing": "runtime/testing/index.ts"
}

export default defineConfig({
  resolve: {
    alias: Object.entries(entryFiles).map(([name, file]) => ({
      find: new RegExp(`^${name}$`),
      replacement: fileURLToPath(new URL(file, import.meta.url))
    }))
  },
  test: {
    sequence: { sequencer: LongestFirst },
    // For what hangs: a slow machine takes several times as long as a quiet one.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // More than there are processors: many suites wait for processes that start, or for time.
    maxWorkers: 4,
    pool: "forks",
    projects: [
      {
        extends: true,
        test: {
          name: "parts",
          // A worker loads the modules once, not for each of its files.
          isolate: false,
          globalSetup: "test/bundle.mjs",
          include: onlySoak
            ? [soak]
            : long
            ? ["test/**/*.long.ts", ...deeper]
            : ["test/**/*.test.ts"],
          exclude: ["test/http/**", units, ...(onlySoak ? [] : [soak])]
        }
      },
      ...(onlySoak ? [] : [
        {
          extends: true as const,
          test: {
            name: "units",
            globalSetup: "test/bundle.mjs",
            include: long ? deeper.filter((path) => path.startsWith("test/actors/")) : [units],
            isolate: false
          }
        },
        onBackend("memory", httpOnStore),
        ...(long ? [] : [onBackend("embedded", { include: [http], exclude: [] })]),
        onBackend("leveldb", httpOnStore),
        onBackend("nats", httpOnNats, natsSetup),
        onBackend("cluster", httpOnCluster, natsSetup)
      ])
    ]
  }
})

/** The message for the operator when a store cannot be used, and the exit code. */
import type { EngineDiffers, EngineMissing, EngineName } from "../../runtime/embedded/index.ts"
import { type CommandFailed, exitCodes, failedAs } from "../command-failure.ts"
import type { BackendFailure } from "./backend.ts"

const modules: Readonly<Record<EngineName, { name: string; platforms: string }>> = {
  rocksdb: {
    name: "RocksDB's native module (@nxtedition/rocksdb)",
    platforms: "It has binaries for Linux on x64 with glibc, and for macOS on arm64."
  },
  leveldb: {
    name: "LevelDB's native module (classic-level)",
    platforms: "It has binaries for Linux, macOS and Windows: run `npm ci` on this machine."
  }
}

const migration = (from: EngineName, to: EngineName, machine: string): string =>
  `To move to ${to}, run \`STORAGE_ENGINE=${from} restante backup <file>\`${machine}, copy ` +
  "the file secret-key into a new folder, then run " +
  `\`STORAGE_ENGINE=${to} restante restore <file> --data-dir <new folder>\`.`

const engineDiffers = ({ found, path, wanted }: EngineDiffers): string =>
  `the store in ${path} is a ${found} database, and STORAGE_ENGINE is ${wanted}. Unset ` +
  `STORAGE_ENGINE to continue with ${found}. ${migration(found, wanted, "")}`

const engineMissing = (folder: string, { detail, engine, reason }: EngineMissing): string => {
  const { name, platforms } = modules[engine]
  const node = `Node ${process.version} on ${process.platform} ${process.arch}`
  const cause = `${node} cannot load ${name}: ${detail.split("\n")[0]}. ${platforms}`
  if (reason === "none") return `no database runs here: ${cause}`
  const isRocks = engine === "rocksdb"
  if (reason === "wanted") {
    const advice = isRocks ? " Unset STORAGE_ENGINE, or set STORAGE_ENGINE=leveldb." : ""
    return `STORAGE_ENGINE is ${engine}, and ${cause}${advice}`
  }
  const advice = isRocks ? ` ${migration("rocksdb", "leveldb", " on a machine that runs it")}` : ""
  return `the store in ${folder} is a ${engine} database, and ${cause}${advice}`
}

type Message<Failure> = (
  location: string,
  failure: Failure
) => string | readonly [message: string, exitCode: CommandFailed["exitCode"]]

/** A message without an exit code describes a temporary failure. */
const messages: {
  readonly [Tag in BackendFailure["_tag"]]: Message<Extract<BackendFailure, { readonly _tag: Tag }>>
} = {
  StorageLocked: (location, { pid }) =>
    `${location} is in use by ${pid === undefined ? "another process" : `process ${pid}`}: ` +
    "stop that process, or give this one its own DATA_DIR",
  StorageCorrupted: (location, { detail }) => [
    `${location} is corrupted: ${detail}. For a report run \`restante check\`; restore a backup`,
    exitCodes.corrupted
  ],
  StorageFull: (location, { detail }) =>
    `${location} has no room left: ${detail}. Free space there, and start again`,
  StorageUnavailable: (location, { advice = "check that it can be reached and written", detail }) =>
    `${location} cannot be used: ${detail}; ${advice}`,
  ValueTooLarge: (location, { detail }) =>
    `${location} cannot be used: ${detail}. Raise the limit of the storage for one value`,
  StoreFormatUnsupported: (location, { found, supported }) => [
    `${location} cannot be opened: its store has ${found}, and this version reads ${supported}. ` +
    "Run the version that wrote the store, which can export it (`restante backup <file>`), or " +
    "start with an empty store (another DATA_DIR or NATS_URL)",
    exitCodes.configuration
  ],
  EngineDiffers: (_, failure) => [engineDiffers(failure), exitCodes.configuration],
  EngineMissing: (location, failure) => [engineMissing(location, failure), exitCodes.configuration],
  NatsTooOld: (location, { found, wanted }) =>
    `${location} is version ${found}, which is too old: install NATS ${wanted} or newer`,
  BucketsDiffer: (location, { found, wanted }) =>
    `${location} has ${found}, and this node is configured for ${wanted}: ` +
    "CLUSTER_BUCKETS cannot change after the first start, so set it to the value found",
  NodeNameTaken: (location, { node }) =>
    `another process is the node ${node} of the cluster on ${location}: ` +
    "give each node its own NODE_ID or its own data directory",
  SecretKeyUnusable: (_, { message }) => [message, exitCodes.configuration],
  NodeUnnamed: (_, { detail, file }) =>
    `${file} cannot be used for this node's name: ${detail}. Correct the file, or set NODE_ID`
}

export const isBackendFailure = (failure: object): failure is BackendFailure =>
  "_tag" in failure && Object.hasOwn(messages, String(failure._tag))

/** The failure of a command whose store, at `location`, cannot be used. */
export const backendFailed = (location: string, failure: BackendFailure): CommandFailed => {
  // Each entry takes the failure of its own tag.
  const described = (messages[failure._tag] as Message<BackendFailure>)(location, failure)
  const [message, exitCode] = typeof described === "string"
    ? [described, exitCodes.unavailable] as const
    : described
  return failedAs(message, exitCode)
}

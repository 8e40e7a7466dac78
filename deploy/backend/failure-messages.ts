/** The message for the operator when a store cannot be used, and the exit code. */
import type { EngineDiffers, EngineMissing, EngineName } from "../../runtime/embedded/index.ts"
import { CommandFailed, exitCodes } from "../command-failure.ts"
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
  `To move to ${to}, run \`STORAGE_ENGINE=${from} restante backup <file>\`${machine}, then ` +
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

/** The failure of a command whose store, at `location`, cannot be used. */
export const backendFailed = (location: string, failure: BackendFailure): CommandFailed => {
  const { configuration, corrupted, unavailable } = exitCodes
  const fail = (
    message: string,
    exitCode: CommandFailed["exitCode"] = unavailable
  ): CommandFailed => new CommandFailed({ message, exitCode })
  switch (failure._tag) {
    case "StorageLocked": {
      const holder = failure.pid === undefined ? "another process" : `process ${failure.pid}`
      return fail(`${location} is in use by ${holder}`)
    }
    case "StorageCorrupted":
      return fail(`${location} is corrupted: ${failure.detail}`, corrupted)
    case "StorageFull":
      return fail(`${location} has no room left: ${failure.detail}`)
    case "StorageUnavailable":
      return fail(`${location} cannot be used: ${failure.detail}`)
    case "StoreFormatUnsupported":
      return fail(
        `${location} cannot be opened: its store has the format ${failure.found}, and this ` +
          `version reads ${failure.supported}. Start with an empty store (another DATA_DIR, or ` +
          "deleted NATS streams), or run the version that wrote this one",
        configuration
      )
    case "EngineDiffers":
      return fail(engineDiffers(failure), configuration)
    case "EngineMissing":
      return fail(engineMissing(location, failure), configuration)
    case "NatsTooOld":
      return fail(`${location} is version ${failure.found}; ${failure.wanted} or newer is needed`)
    case "BucketsDiffer":
      return fail(
        `${location} has ${failure.found}, and this node is configured for ${failure.wanted}: ` +
          "CLUSTER_BUCKETS cannot change after the first start"
      )
    case "NodeNameTaken":
      return fail(
        `another process is the node ${failure.node} of the cluster on ${location}: ` +
          "give each node its own NODE_ID or its own data directory"
      )
    case "NodeUnnamed":
      return fail(`${failure.file} cannot be used for this node's name: ${failure.detail}`)
  }
}

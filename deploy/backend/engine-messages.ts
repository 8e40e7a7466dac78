/** What the operator is told when a store's database is not the right one, or does not run here. */
import type { EngineDiffers, EngineMissing, EngineName } from "../../runtime/embedded/index.ts"

const modules: Readonly<Record<EngineName, { name: string; needs: string }>> = {
  rocksdb: {
    name: "RocksDB's native module (@nxtedition/rocksdb)",
    needs: "It has binaries for Linux on x64 with glibc, and for macOS on arm64."
  },
  leveldb: {
    name: "LevelDB's native module (classic-level)",
    needs: "It has binaries for Linux, macOS and Windows: has `npm ci` been run on this machine?"
  }
}

const move = (from: EngineName, to: EngineName, elsewhere: string): string =>
  `To move to ${to}, \`STORE=${from} restante backup <file>\`${elsewhere}, then ` +
  `\`STORE=${to} restante restore <file> --data-dir <new folder>\`.`

/** The folder has another database than STORE says. */
export const differing = ({ found, path, wanted }: EngineDiffers): string =>
  `the store in ${path} is of ${found}, and STORE says ${wanted}. Leave STORE unset to go on ` +
  `with ${found}. ${move(found, wanted, "")}`

/** The database cannot be loaded; `place` is the folder. */
export const missing = (place: string, { detail, engine, reason }: EngineMissing): string => {
  const { name, needs } = modules[engine]
  const where = `Node ${process.version} on ${process.platform} ${process.arch}`
  const why = `${name} cannot be loaded by ${where}: ${detail.split("\n")[0]}. ${needs}`
  if (reason === "none") return `no database runs here: ${why}`
  const isRocks = engine === "rocksdb"
  if (reason === "insisted") {
    const instead = isRocks ? " Leave STORE unset, or set STORE=leveldb." : ""
    return `STORE says ${engine}, and ${why}${instead}`
  }
  const other = isRocks ? ` ${move("rocksdb", "leveldb", " on a machine where it runs")}` : ""
  return `the store in ${place} is of ${engine}, and ${why}${other}`
}

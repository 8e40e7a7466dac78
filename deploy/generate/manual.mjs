#!/usr/bin/env node
/** Writes the manual pages of the compiled command line: `node deploy/generate/manual.mjs`. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { manualPages } from "../../dist/deploy/manual/index.js"
import { inRoot, manualFile } from "../prepare.mjs"

const folder = dirname(inRoot(manualFile))

// A page of a command that no longer exists would stay.
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
for (const [name, text] of await manualPages()) writeFileSync(join(folder, name), text)

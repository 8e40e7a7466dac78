#!/usr/bin/env node
/** Writes the manual page of the compiled command line: `node deploy/generate/manual.mjs`. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { manualPage } from "../../dist/deploy/manual/index.js"
import { inRoot, manualFile } from "../prepare.mjs"

mkdirSync(dirname(inRoot(manualFile)), { recursive: true })
writeFileSync(inRoot(manualFile), await manualPage())

CREATE TABLE resources (
	project TEXT NOT NULL,
	id      TEXT NOT NULL,
	spec    TEXT NOT NULL CHECK (json_valid(spec)),
	created INTEGER NOT NULL,
	PRIMARY KEY (project, id)
) STRICT, WITHOUT ROWID;

-- The current one of each resource; its revision only rises.
CREATE TABLE attachments (
	project   TEXT NOT NULL,
	resource  TEXT NOT NULL,
	revision  INTEGER NOT NULL CHECK (revision >= 0),
	authority TEXT NOT NULL,
	harness   TEXT,
	native    TEXT,
	PRIMARY KEY (project, resource),
	FOREIGN KEY (project, resource) REFERENCES resources (project, id),
	CHECK ((harness IS NULL) = (native IS NULL))
) STRICT, WITHOUT ROWID;

-- For good: there is no way back.
CREATE TABLE retirements (
	project  TEXT NOT NULL,
	resource TEXT NOT NULL,
	at       INTEGER NOT NULL,
	PRIMARY KEY (project, resource),
	FOREIGN KEY (project, resource) REFERENCES resources (project, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
	id      TEXT NOT NULL PRIMARY KEY,
	hash    BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
	project TEXT NOT NULL, -- empty: all of them
	binding TEXT CHECK (binding IS NULL OR json_valid(binding)),
	created INTEGER NOT NULL,
	revoked INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	project  TEXT NOT NULL,
	resource TEXT NOT NULL,
	record   TEXT NOT NULL CHECK (json_valid(record))
) STRICT;

CREATE INDEX audit_by_resource ON audit (project, resource, id);

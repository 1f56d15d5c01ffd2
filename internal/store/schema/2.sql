-- When what a retired resource left behind was removed; NULL: that has to be done.
ALTER TABLE retirements ADD COLUMN purged INTEGER;

CREATE TABLE settings (
	name  TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
